import type { DaemonConfig } from '../../suite/config-file.ts';

/**
 * Milliseconds between two looks while there is nothing to do, however many cases there are: about one
 * request a second.
 */
const idleGapMs = 1_000;

/** Where runs may turn up: a suite has cases, a case has runs. */
export interface Place {
  kind: 'suite' | 'case';
  id: string;
}

interface Look {
  place: Place;
  /** Milliseconds between the last look and the next. */
  every: number;
  nextAt: number;
  /** Whether the whole of it has been looked through once. */
  known: boolean;
  trouble: string | undefined;
}

/** When to look where: often where runs come in, ever less often where none do, never all at one moment. */
export class Places {
  readonly #monotonic: () => number;
  readonly #random: () => number;
  readonly #looks = new Map<string, Look>();
  #poll: DaemonConfig['poll'];

  /** @param random from 0 (inclusive) to 1 (exclusive) */
  constructor(
    settings: DaemonConfig,
    { monotonic, random }: { monotonic: () => number; random: () => number },
  ) {
    this.#monotonic = monotonic;
    this.#random = random;
    this.#poll = settings.poll;
    this.change(settings);
  }

  /** Goes by other settings from now on. Cases that a suite had are found again. */
  change({ suites, cases, poll }: DaemonConfig): void {
    this.#poll = poll;
    const before = new Map(this.#looks);
    this.#looks.clear();
    const places = [
      ...suites.map((id): Place => ({ kind: 'suite', id })),
      ...cases.map((id): Place => ({ kind: 'case', id })),
    ];
    for (const place of places) {
      const kept = before.get(nameOf(place));
      if (kept) this.#looks.set(nameOf(place), { ...kept, nextAt: this.#monotonic() });
      else this.add(place);
    }
  }

  /** A place to look at from now on, at once. */
  add(place: Place): void {
    if (this.#looks.has(nameOf(place))) return;
    const look: Look = {
      place,
      every: this.#poll.min,
      nextAt: this.#monotonic(),
      known: false,
      trouble: undefined,
    };
    this.#looks.set(nameOf(place), look);
  }

  /** The place to look at next, and in how many milliseconds; undefined where there is none at all. */
  next(): { place: Place; inMs: number; known: boolean } | undefined {
    let first: Look | undefined;
    for (const look of this.#looks.values()) {
      if (!first || look.nextAt < first.nextAt) first = look;
    }
    if (!first) return undefined;
    const { place, nextAt, known } = first;
    return { place, known, inMs: Math.max(0, Math.ceil(nextAt - this.#monotonic())) };
  }

  /**
   * Notes what a look brought. Where there was something new, there is likely more of the same batch in other
   * cases.
   */
  looked(place: Place, brought: 'something' | 'nothing'): void {
    const look = this.#looks.get(nameOf(place));
    if (!look) return;
    look.known = true;
    look.trouble = undefined;
    this.#schedule(look, brought === 'something');
    if (brought === 'nothing') return;
    for (const other of this.#looks.values()) {
      if (other !== look) other.every = this.#poll.min;
      if (other !== look) other.nextAt = Math.min(other.nextAt, this.#monotonic() + this.#poll.min);
    }
  }

  /** Notes that a look failed. Returns whether that is news. */
  failed(place: Place, trouble: string): boolean {
    const look = this.#looks.get(nameOf(place));
    if (!look) return false;
    const isNews = look.trouble === undefined;
    look.trouble = trouble;
    this.#schedule(look, false);
    return isNews;
  }

  get size(): number {
    return this.#looks.size;
  }

  /** Whether every place has been looked through once, or could not be. */
  get allLooked(): boolean {
    return [...this.#looks.values()].every(({ known, trouble }) => known || trouble !== undefined);
  }

  get troubles(): { place: string; trouble: string }[] {
    return [...this.#looks.values()].flatMap(({ place, trouble }) =>
      trouble === undefined ? [] : [{ place: nameOf(place), trouble }],
    );
  }

  #schedule(look: Look, soon: boolean): void {
    const { min, max } = this.#poll;
    const longest = Math.max(max, this.#looks.size * idleGapMs);
    look.every = soon ? min : Math.min(longest, look.every * 2);
    // Between three and five quarters: places that were found together do not stay together.
    look.nextAt = this.#monotonic() + look.every * (0.75 + this.#random() / 2);
  }
}

function nameOf({ kind, id }: Place): string {
  return `${kind} ${id}`;
}
