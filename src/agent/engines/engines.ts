import { pause } from '../../base/deadline.ts';
import type { Engine } from '../../engine/engine.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import { sizeOfTrial } from '../admission.ts';
import { type Circuit, type CircuitEvent, Circuits, type SharedCircuitParts } from '../circuits.ts';
import type { MachineCheck } from '../specify.ts';
import { PooledEngine, Seat } from './seat.ts';

/** Milliseconds between two tries of an engine that no trial waits for any more. */
const tryAgainMs = 60_000;

/** One of several engines. */
export interface EngineStatus {
  name: string;
  address: string;
  /** Whether it answered when the worker last needed it. */
  works: boolean;
  /** Trials that run there. */
  running: number;
  /** The most trials at a time. Absent: as many as its cores and memory allow. */
  trials?: number | undefined;
}

export interface EnginesParts extends SharedCircuitParts {
  /** At least one. */
  engines: readonly Engine[];
  /** Whether there are others too, or will be. */
  areSeveral: boolean;
  check: Pick<MachineCheck, 'fits'>;
}

/**
 * The agent's engines. It spreads trials over them: a trial gets a seat at the engine that it fits and that
 * has the most free cores and memory. While it waits for its permit there, it moves if the engine fails, or
 * if another one has room and this one has not. A trial that runs never moves.
 */
export class Engines implements Disposable {
  readonly #pool: PooledEngine[] = [];
  readonly #models = new Map<string, Circuit>();
  readonly #parts: EnginesParts;
  readonly #seats = new Set<Seat>();
  readonly #disposed = new AbortController();

  constructor(parts: EnginesParts) {
    this.#parts = parts;
    for (const engine of parts.engines) this.#add(engine);
  }

  get pool(): readonly PooledEngine[] {
    return this.#pool;
  }

  /** Adds an engine. Trials that wait elsewhere move to it if it can run them and has room. */
  join(engine: Engine): void {
    const pooled = this.#add(engine);
    for (const seat of this.#seats) void this.#offer(pooled, seat);
  }

  #add(engine: Engine): PooledEngine {
    const parts = this.#parts;
    const { areSeveral } = parts;
    const observe = (event: CircuitEvent) => {
      parts.observe(event);
      if (areSeveral && event.for === name) this.#changed(pooled, event);
    };
    const name = areSeveral ? `the engine ${engine.name}` : 'the engine';
    const circuits = new Circuits({ ...parts, engine, models: this.#models, engineName: name, observe });
    const pooled = new PooledEngine({ engine, circuits, isOneOfSeveral: areSeveral });
    this.#pool.push(pooled);
    return pooled;
  }

  /** Never rejects. */
  async #offer(pooled: PooledEngine, seat: Seat): Promise<void> {
    const fits = this.#parts.check.fits(pooled.engine, seat.spec, this.#disposed.signal);
    if (!(await fits.catch(() => false))) return;
    seat.fitsAt(pooled);
    this.rebalance();
  }

  /**
   * A seat for a trial. The caller disposes it when the trial no longer runs there. If no engine can run the
   * trial, the seat is at any engine, and the attempt fails there with the reason.
   *
   * @param wanted the engine that the trial moves to
   */
  async seat(spec: TrialSpec, signal: AbortSignal, wanted?: PooledEngine): Promise<Seat> {
    const size = sizeOfTrial(spec);
    const fitting = await this.#fitting(spec, signal);
    const up = fitting.filter((pooled) => !pooled.circuits.isEngineOpen);
    const [first, ...others] = up.length > 0 ? up : fitting;
    if (!first) throw new Error('the agent has no engine');
    const least = (one: PooledEngine, other: PooledEngine) =>
      other.loadWith(size) < one.loadWith(size) ? other : one;
    const pooled = wanted && fitting.includes(wanted) ? wanted : others.reduce(least, first);
    const seat = new Seat({
      pooled,
      spec,
      fitting,
      clock: this.#parts.clock,
      hasMoved: wanted !== undefined,
      changed: () => this.rebalance(),
      left: () => this.#seats.delete(seat),
    });
    this.#seats.add(seat);
    return seat;
  }

  /** Moves trials that wait at one engine and could run at another. */
  rebalance(): void {
    if (this.pool.length === 1) return;
    const promised = new Set<PooledEngine>();
    for (const seat of this.#seats) {
      const better = seat.better(promised);
      if (!better) continue;
      promised.add(better);
      seat.move(better);
    }
  }

  /** Whether a model is down, so that its trials wait. */
  isModelOpen(model: string): boolean {
    return this.pool.some(({ circuits }) => circuits.isOpen(model));
  }

  /** Whether no engine answers. */
  get areAllDown(): boolean {
    return this.pool.every(({ circuits }) => circuits.isEngineOpen);
  }

  /** Finds out which engines answer. */
  async suspect(reason: string, signal: AbortSignal): Promise<void> {
    await Promise.all(this.pool.map(({ circuits }) => circuits.suspectEngine(reason, signal)));
  }

  /** Resolves when an engine answers. */
  async anyAnswers(signal: AbortSignal): Promise<void> {
    using settled = new DisposableStack();
    const enough = new AbortController();
    settled.defer(() => enough.abort());
    const either = AbortSignal.any([signal, enough.signal]);
    await Promise.race(this.pool.map(({ circuits }) => circuits.engineAnswers(either)));
  }

  [Symbol.dispose](): void {
    this.#disposed.abort();
  }

  async #fitting(spec: TrialSpec, signal: AbortSignal): Promise<readonly PooledEngine[]> {
    const { pool } = this;
    if (pool.length === 1) return pool;
    const fits = await Promise.all(
      pool.map(
        (pooled) => pooled.circuits.isEngineOpen || this.#parts.check.fits(pooled.engine, spec, signal),
      ),
    );
    const fitting = pool.filter((_, index) => fits[index]);
    return fitting.length > 0 ? fitting : pool;
  }

  #changed(pooled: PooledEngine, event: CircuitEvent): void {
    if (event.kind === 'waiting') void this.#watch(pooled);
    // The circuit has changed its state, but the trials that wait for it have not continued yet.
    this.rebalance();
  }

  /** Tries an engine that is down until it answers, even if no trial waits for it. Never rejects. */
  async #watch({ circuits }: PooledEngine): Promise<void> {
    const { signal } = this.#disposed;
    while (circuits.isEngineOpen && !signal.aborted) {
      try {
        await circuits.engineAnswers(signal);
      } catch {
        if (signal.aborted) return;
        // The trials gave up waiting for the engine, but it is still tried.
        await pause(this.#parts.clock, tryAgainMs, signal);
        await circuits.tryEngine(signal).catch(() => undefined);
      }
    }
  }
}
