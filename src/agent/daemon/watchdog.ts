/** Milliseconds that a loop may be late: a loaded machine is no stuck one. */
const latenessMs = 60_000;

/** Told by a loop that it is alive, and within how many milliseconds it will say so again. */
export type Beat = (withinMs: number) => void;

/**
 * Knows which loops have not been heard of for longer than they said. On a clock that nobody can set: a wall clock that jumps makes no
 * loop look stuck.
 */
export class Watchdog {
  readonly #monotonic: () => number;
  readonly #due = new Map<string, number>();

  /** @param monotonic milliseconds since some moment, never set back */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** Watches a loop from its first beat on. */
  loop(name: string): Beat {
    return (withinMs) => this.#due.set(name, this.#monotonic() + withinMs + latenessMs);
  }

  /** Forgets a loop that has come to its end. */
  ended(name: string): void {
    this.#due.delete(name);
  }

  /** The names of the loops that are stuck. */
  stuck(): string[] {
    const now = this.#monotonic();
    return [...this.#due].filter(([, due]) => due < now).map(([name]) => name);
  }
}
