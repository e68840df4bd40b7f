import type { Clock } from '../../base/clock.ts';
import { Semaphore } from '../../base/semaphore.ts';
import type { Engine } from '../../engine/engine.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import {
  type AdaptingLimit,
  type Admission,
  type Applicant,
  fitsBeside,
  roomOf,
  type Size,
  sizeOfTrial,
  sumOf,
  type TrialSize,
} from '../admission.ts';
import type { Circuits, Permit } from '../circuits.ts';

interface PooledEngineParts {
  engine: Engine;
  circuits: Circuits;
  /** Whether the agent has other engines too. */
  isOneOfSeveral: boolean;
}

/** One of the agent's engines, with the trials that are there or wait for it. */
export class PooledEngine {
  readonly engine: Engine;
  /** The circuit of the engine, and those of models, which all engines share. */
  readonly circuits: Circuits;
  /**
   * Permits for trials on this engine. Undefined if it is the only one and has no limit: then the agent's
   * concurrency alone decides.
   */
  readonly permits: Semaphore<TrialSize> | undefined;
  /** The sizes of the trials that are here or wait for this engine. */
  readonly #taken = new Set<TrialSize>();
  readonly #room: Size;

  constructor({ engine, circuits, isOneOfSeveral }: PooledEngineParts) {
    this.engine = engine;
    this.circuits = circuits;
    this.#room = roomOf(engine.capabilities);
    const { trials } = engine;
    if (trials !== undefined) {
      this.permits = new Semaphore(trials, (running, next) => fitsBeside(running, next, this.#room));
    } else if (isOneOfSeveral) {
      this.permits = new Semaphore(Number.POSITIVE_INFINITY, (running, next) =>
        fitsInto(this.#room, running, next),
      );
    }
  }

  /** Counts a trial as one of this engine, until the result is disposed. */
  take(size: TrialSize): Disposable {
    const own = { ...size };
    this.#taken.add(own);
    return { [Symbol.dispose]: () => void this.#taken.delete(own) };
  }

  /** How full this engine would be with one more trial. More than 1 if it would have to wait. */
  loadWith(size: TrialSize): number {
    const all = [...this.#taken, size];
    const { trials } = this.engine;
    const { cpus, memory } = wholeOf(all);
    const bySize = Math.max(cpus / this.#room.cpus, memory / this.#room.memory);
    return trials === undefined ? bySize : all.length / trials;
  }

  /** Whether a trial of this size would get a permit now. */
  hasRoomFor(size: TrialSize): boolean {
    return this.permits === undefined || (this.permits.waiting === 0 && this.permits.fits(size));
  }
}

/** Whether a trial's cores and memory are free beside the running trials. A trial alone may always run. */
function fitsInto(room: Size, running: readonly TrialSize[], next: TrialSize): boolean {
  if (running.length === 0) return true;
  const { cpus, memory } = wholeOf([...running, next]);
  return cpus <= room.cpus && memory <= room.memory;
}

function wholeOf(sizes: readonly TrialSize[]): Size {
  return sumOf(sizes.flatMap(({ sandbox, services }) => [sandbox, services]));
}

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
