import { type BackoffLimits, backoff, type Clock } from '../../base/clock.ts';
import { pause } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Engine } from '../../engine/engine.ts';

/** Milliseconds between two tries of an engine that was away at the start. */
const waits: BackoffLimits = { first: 2_000, longest: 30_000 };

/** An engine that did not answer at the start. */
export interface LateEngine {
  name: string;
  /** As the configuration has it. */
  address: string;
  /** The most trials at a time, if that is set. */
  trials: number | undefined;
  connect(signal: AbortSignal): Promise<Engine>;
}

export interface LateEnginesParts {
  late: readonly LateEngine[];
  clock: Clock;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** Called with each engine before its first trial. The callee disposes it. */
  joins(engine: Engine): void;
  /** Called when an engine answers, and cannot be used. It is not tried again. */
  refused(name: string, error: OffsiteError): void;
}

/** Connects to the engines that were away at the start, when they come back. */
export class LateEngines implements AsyncDisposable {
  readonly #parts: LateEnginesParts;
  readonly #disposed = new AbortController();
  readonly #away: Set<LateEngine>;
  readonly #joined: Engine[] = [];
  readonly #listeners = new Set<(engine: Engine) => void>();
  readonly #tries: Promise<unknown>;

  constructor(parts: LateEnginesParts) {
    this.#parts = parts;
    this.#away = new Set(parts.late);
    this.#tries = Promise.all(parts.late.map((one) => this.#keepTrying(one)));
    // Disposing rejects with the error; here it only must not count as unhandled.
    this.#tries.catch(() => undefined);
  }

  /** The engines that are still away. */
  get away(): readonly LateEngine[] {
    return [...this.#away];
  }

  /** The engines that have come back. */
  get joined(): readonly Engine[] {
    return this.#joined;
  }

  /** Calls the listener with each engine that comes back from now on. */
  onJoin(listener: (engine: Engine) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed.abort();
    await this.#tries;
  }

  async #keepTrying(late: LateEngine): Promise<void> {
    const { clock, random, joins, refused } = this.#parts;
    const { signal } = this.#disposed;
    for (let failures = 1; ; failures += 1) {
      // The wait is never 0, or trying would be a busy loop.
      await pause(clock, 250 + backoff(failures, waits, random), signal);
      if (signal.aborted) return;
      try {
        const engine = await late.connect(signal);
        this.#away.delete(late);
        joins(engine);
        this.#joined.push(engine);
        for (const listener of this.#listeners) listener(engine);
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof OffsiteError)) throw error;
        if (error.kind === 'input') return refused(late.name, error);
      }
    }
  }
}
