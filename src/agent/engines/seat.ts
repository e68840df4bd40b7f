import type { Clock } from '../../base/clock.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import type { AdaptingLimit, Admission, Applicant } from '../admission.ts';
import type { Permit } from '../circuits.ts';
import { sizeOfTrial, type TrialSize } from '../trial-size.ts';
import type { PooledEngine } from './pooled-engine.ts';

/**
 * Milliseconds for which a trial that moved stays where it is, whatever room there is elsewhere. Otherwise,
 * trials that make room for each other would move forever.
 */
const stayMs = 1_000;

/** A trial that waits at one engine must wait at another. The caller takes a seat there. */
export class Moved extends Error {
  override readonly name = 'Moved';
  readonly to: PooledEngine;

  constructor(to: PooledEngine) {
    super('the trial moves to another engine');
    this.to = to;
  }
}

export interface SeatParts {
  pooled: PooledEngine;
  spec: TrialSpec;
  /** The engines that can run the trial. */
  fitting: readonly PooledEngine[];
  clock: Clock;
  /** Whether the trial has just moved here. */
  hasMoved: boolean;
  /** Called when a permit of the engine is free, or the trial begins to wait. */
  changed(): void;
  left(): void;
}

/** The state of a trial that waits. */
interface Waiting {
  moving: AbortController;
  /** What the trial asked the engine for. It waits in line there, or has its permit. */
  asked: TrialSize | undefined;
}

/** What a trial in flight has at an engine. */
export class Seat implements Disposable {
  readonly pooled: PooledEngine;
  readonly spec: TrialSpec;
  readonly #parts: SeatParts;
  readonly #fitting: Set<PooledEngine>;
  readonly #size: TrialSize;
  readonly #taken: Disposable;
  readonly #ended = new AbortController();
  /** Whether the trial must not move to an engine with more room. */
  #stays = false;
  #waiting: Waiting | undefined;

  constructor(parts: SeatParts) {
    this.#parts = parts;
    this.pooled = parts.pooled;
    this.spec = parts.spec;
    this.#fitting = new Set(parts.fitting);
    this.#size = sizeOfTrial(parts.spec);
    if (parts.hasMoved) this.#stay();
    this.#taken = parts.pooled.take(this.#size);
  }

  /**
   * Does the same as `enter` of the circuits. Rejects with {@link Moved} if the trial must wait elsewhere.
   */
  async enter(
    spec: TrialSpec,
    admission: Pick<Admission, 'enter'>,
    signal: AbortSignal,
    adapting?: AdaptingLimit,
  ): Promise<Permit> {
    const waiting: Waiting = { moving: new AbortController(), asked: undefined };
    this.#waiting = waiting;
    const { pooled, changed } = this.#parts;
    const { permits } = pooled;
    const acquire = async (signal: AbortSignal, size: TrialSize) => {
      waiting.asked = size;
      const permit = await permits?.acquire(signal, size);
      return {
        [Symbol.dispose]() {
          waiting.asked = undefined;
          permit?.[Symbol.dispose]();
          changed();
        },
      };
    };
    const here = {
      enter: (applicant: Applicant, signal: AbortSignal) =>
        admission.enter(
          permits === undefined ? applicant : { ...applicant, enginePermits: { acquire } },
          signal,
        ),
    };
    changed();
    try {
      const either = AbortSignal.any([signal, waiting.moving.signal]);
      return await pooled.circuits.enter(spec, here, either, adapting);
    } catch (error) {
      // The wait may have rejected with another error than the reason of the abort.
      if (!signal.aborted && waiting.moving.signal.aborted) throw waiting.moving.signal.reason;
      throw error;
    } finally {
      this.#waiting = undefined;
    }
  }

  /** An engine where the trial would wait less or run at once; undefined if there is none. */
  better(promised: ReadonlySet<PooledEngine>): PooledEngine | undefined {
    const pooled = this.pooled;
    if (!this.#waiting) return undefined;
    const { asked } = this.#waiting;
    // The trial has its permit but does not know it yet. If it moved, two trials could make each other move
    // forever.
    if (asked && !pooled.permits?.line.includes(asked)) return undefined;
    const size = this.#size;
    const up = [...this.#fitting].filter((one) => one !== pooled && !one.circuits.isEngineOpen);
    const roomy = up.find((one) => !promised.has(one) && one.hasRoomFor(size));
    if (pooled.circuits.isEngineOpen) return roomy ?? up[0];
    if (this.#stays) return undefined;
    return pooled.permits?.fits(size) === false ? roomy : undefined;
  }

  /** Adds an engine that can run the trial. */
  fitsAt(pooled: PooledEngine): void {
    this.#fitting.add(pooled);
  }

  move(to: PooledEngine): void {
    this.#waiting?.moving.abort(new Moved(to));
    this.#waiting = undefined;
  }

  #stay(): void {
    this.#stays = true;
    const over = () => {
      this.#stays = false;
      // Permits that became free while the trial had to stay will not be reported again.
      this.#parts.changed();
    };
    this.#parts.clock.sleep(stayMs, this.#ended.signal).then(over, () => undefined);
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    this.#taken[Symbol.dispose]();
    this.#parts.left();
    this.#parts.changed();
  }
}
