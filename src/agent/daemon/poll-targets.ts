import type { Clock } from '../../base/clock.ts';
import type { DaemonConfig } from '../../suite/config-file.ts';

/**
 * Milliseconds between two polls while there is nothing to do, however many targets there are: about one
 * request a second.
 */
const idleGapMs = 1_000;

/** What to poll, and how often. */
export type PollSettings = Pick<DaemonConfig, 'suites' | 'cases' | 'poll'>;

/** Where the daemon looks for runs: a suite has cases, a case has runs. */
export interface PollTarget {
  kind: 'suite' | 'case';
  id: string;
  /** The id of the suite through which a case was found: only the runs of this suite are wanted. */
  suite?: string;
}

interface Look {
  target: PollTarget;
  /** Milliseconds between the last poll and the next. */
  every: number;
  nextAt: number;
  /** Whether a poll has read all of the target once. */
  known: boolean;
  failure: string | undefined;
  /** Whether the service listed nothing of it: its name may be misspelt. */
  empty: boolean;
}

/**
 * Decides which target to poll when: often if runs come in, less and less often if none do, and never all
 * targets at the same moment.
 */
export class PollTargets {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #random: () => number;
  readonly #looks = new Map<string, Look>();
  #poll: DaemonConfig['poll'];

  /** @param random from 0 (inclusive) to 1 (exclusive) */
  constructor(
    settings: PollSettings,
    { clock, random }: { clock: Pick<Clock, 'monotonic'>; random: () => number },
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#poll = settings.poll;
    this.change(settings);
  }

  /**
   * Uses other settings from now on. The cases of suites are forgotten, and the next polls find them again.
   */
  change({ suites, cases, poll }: PollSettings): void {
    this.#poll = poll;
    const before = new Map(this.#looks);
    this.#looks.clear();
    const targets = [
      ...suites.map((id): PollTarget => ({ kind: 'suite', id })),
      ...cases.map((id): PollTarget => ({ kind: 'case', id })),
    ];
    for (const target of targets) {
      const kept = before.get(nameOf(target));
      if (kept) this.#looks.set(nameOf(target), { ...kept, nextAt: this.#clock.monotonic() });
      else this.add(target);
    }
  }

  /** Adds a target, which is due at once. `known` if a poll has read all of it before. */
  add(target: PollTarget, known = false): void {
    if (this.#looks.has(nameOf(target))) return;
    const look: Look = {
      target,
      every: this.#poll.min,
      nextAt: this.#clock.monotonic(),
      known,
      failure: undefined,
      empty: false,
    };
    this.#looks.set(nameOf(target), look);
  }

  /** The next target to poll, and in how many milliseconds; undefined if there are no targets. */
  next(): { target: PollTarget; inMs: number; known: boolean } | undefined {
    let first: Look | undefined;
    for (const look of this.#looks.values()) {
      if (!first || look.nextAt < first.nextAt) first = look;
    }
    if (!first) return undefined;
    const { target, nextAt, known } = first;
    return { target, known, inMs: Math.max(0, Math.ceil(nextAt - this.#clock.monotonic())) };
  }

  /** The targets to poll within the given milliseconds, the next one first. */
  due(withinMs: number, most: number): { target: PollTarget; known: boolean }[] {
    const until = this.#clock.monotonic() + withinMs;
    return [...this.#looks.values()]
      .filter(({ nextAt }) => nextAt <= until)
      .toSorted((one, other) => one.nextAt - other.nextAt)
      .slice(0, most)
      .map(({ target, known }) => ({ target, known }));
  }

  /** All targets, and whether a poll has read all of each. */
  get all(): { target: PollTarget; known: boolean }[] {
    return [...this.#looks.values()].map(({ target, known }) => ({ target, known }));
  }

  /**
   * Notes what a poll found. If it found something new, all other targets are polled soon, because other
   * cases probably have runs of the same batch.
   */
  polled(target: PollTarget, brought: 'something' | 'nothing'): void {
    const look = this.#looks.get(nameOf(target));
    if (!look) return;
    look.known = true;
    look.failure = undefined;
    this.#schedule(look, brought === 'something');
    if (brought === 'nothing') return;
    for (const other of this.#looks.values()) {
      if (other !== look) other.every = this.#poll.min;
      if (other !== look) other.nextAt = Math.min(other.nextAt, this.#clock.monotonic() + this.#poll.min);
    }
  }

  /** Notes that a poll failed. Returns false if the poll before it failed as well. */
  failed(target: PollTarget, failure: string): boolean {
    const look = this.#looks.get(nameOf(target));
    if (!look) return false;
    const isNews = look.failure === undefined;
    look.failure = failure;
    this.#schedule(look, false);
    return isNews;
  }

  get size(): number {
    return this.#looks.size;
  }

  /** Whether every target has been read once, or its last poll failed. */
  get allPolled(): boolean {
    return [...this.#looks.values()].every(({ known, failure }) => known || failure !== undefined);
  }

  /** Notes whether the service lists anything of a target. Returns false if that was known. */
  listed(target: PollTarget, items: number): boolean {
    const look = this.#looks.get(nameOf(target));
    const isNews = look !== undefined && look.empty !== (items === 0);
    if (look) look.empty = items === 0;
    return isNews;
  }

  /** The targets of which the service lists nothing. */
  get empty(): string[] {
    return [...this.#looks.values()].flatMap(({ target, empty }) => (empty ? [nameOf(target)] : []));
  }

  get failures(): { target: string; failure: string }[] {
    return [...this.#looks.values()].flatMap(({ target, failure }) =>
      failure === undefined ? [] : [{ target: nameOf(target), failure }],
    );
  }

  #schedule(look: Look, soon: boolean): void {
    const { min, max } = this.#poll;
    const longest = Math.max(max, this.#looks.size * idleGapMs);
    look.every = soon ? min : Math.min(longest, look.every * 2);
    // Between 75 % and 125 % of the wait, so that targets found together are not always polled together.
    look.nextAt = this.#clock.monotonic() + look.every * (0.75 + this.#random() / 2);
  }
}

function nameOf({ kind, id, suite }: PollTarget): string {
  return suite === undefined ? `${kind} ${id}` : `${kind} ${id} of suite ${suite}`;
}
