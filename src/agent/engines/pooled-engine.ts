import { Semaphore } from '../../base/semaphore.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Circuits } from '../circuits.ts';
import { fitsBeside, roomOf, type Size, sumOf, type TrialSize } from '../trial-size.ts';

export interface PooledEngineParts {
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
