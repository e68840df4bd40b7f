import { abortable, startDeadline } from '../../base/deadline.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Cause } from '../../record/cause.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import type { TrialSpec } from '../../trial/spec.ts';
import {
  type AdaptingLimit,
  type Admission,
  fitsBeside,
  roomOf,
  type Size,
  sizeOfTrial,
  sumOf,
  type TrialSize,
} from '../admission.ts';
import { Circuit, type CircuitParts, maxParallelOf, type Passage } from '../circuits.ts';
import type { MachineCheck } from '../specify.ts';

/** Milliseconds within which a working engine answers. */
const probeMs = 10_000;

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

export interface EnginesParts extends Pick<CircuitParts, 'clock' | 'random' | 'patienceMs' | 'observe'> {
  /** At least one. */
  engines: readonly Engine[];
  /** Whether there are others too, or will be. */
  areSeveral: boolean;
  check: Pick<MachineCheck, 'fits'>;
}

/** One of the agent's engines, with the trials that are there or wait for it. */
export class PooledEngine {
  readonly engine: Engine;
  readonly circuit: Circuit;
  readonly seats = new Set<Seat>();
  readonly #isOneOfSeveral: boolean;
  readonly #room: Size;

  constructor(engine: Engine, circuit: Circuit, isOneOfSeveral: boolean) {
    this.engine = engine;
    this.circuit = circuit;
    this.#isOneOfSeveral = isOneOfSeveral;
    this.#room = roomOf(engine.capabilities);
  }

  get isDown(): boolean {
    return this.circuit.isOpen;
  }

  /** How full this engine would be with one more trial. More than 1 if it would have to wait. */
  loadWith(size: TrialSize): number {
    const all = [...[...this.seats].map((seat) => seat.size), size];
    const { trials } = this.engine;
    const { cpus, memory } = wholeOf(all);
    const bySize = Math.max(cpus / this.#room.cpus, memory / this.#room.memory);
    return trials === undefined ? bySize : all.length / trials;
  }

  /**
   * Whether there is room for one more trial beside those in these states. Without a limit of its own, its
   * cores and memory decide; if it is the only engine, the agent's concurrency alone. A trial alone may
   * always run.
   */
  hasRoomFor(size: TrialSize, beside: readonly Seat['state'][]): boolean {
    const { trials } = this.engine;
    const running = [...this.seats].filter(({ state }) => beside.includes(state)).map((seat) => seat.size);
    if (trials !== undefined) return running.length < trials && fitsBeside(running, size, this.#room);
    if (!this.#isOneOfSeveral || running.length === 0) return true;
    const { cpus, memory } = wholeOf([...running, size]);
    return cpus <= this.#room.cpus && memory <= this.#room.memory;
  }
}

function wholeOf(sizes: readonly TrialSize[]): Size {
  return sumOf(sizes.flatMap(({ sandbox, services }) => [sandbox, services]));
}

/** A trial that waits has moved to another engine. The caller prepares it there, and enters again. */
export class Moved extends Error {
  override readonly name = 'Moved';
}

/** A permit to run a trial. Disposing gives it back. */
export interface Permit extends Disposable {
  worked(): void;
  /**
   * Reports why the attempt failed, and what its models did. Resolves with whether the engine is down, or the
   * model still is; if so, the attempt does not count. Only a failure that the gateway saw opens a model's
   * circuit, because an agent can make a harness say anything.
   */
  failed(
    cause: Cause,
    models: TrialRecord['models'],
    isModelUnreachable: boolean,
    signal: AbortSignal,
  ): Promise<boolean>;
}

/** What a trial in flight has at an engine. Only {@link Engines} changes it. */
export interface Seat extends Disposable {
  readonly spec: TrialSpec;
  readonly size: TrialSize;
  pooled: PooledEngine;
  /** The engines that can run the trial. */
  fitting: Set<PooledEngine>;
  /** `elsewhere`: it waits for something else. `comes`: it has moved, and has not asked for room yet. */
  state: 'elsewhere' | 'comes' | 'waits' | 'has room';
  /** What it waits for in line: that an engine works, and then room there. */
  asks: 'engine' | 'room';
  /** Ends its wait in line, with an error if the trial must not go on here. */
  answer(error?: Error): void;
  /**
   * Resolves when engine and model seem to work and the trial has its permit. Rejects with {@link Moved} if
   * the trial must wait at another engine, and with `CIRCUIT_OPEN` after too long a wait for what is down.
   *
   * @param adapting the model's limit, if it adapts
   */
  enter(admission: Pick<Admission, 'enter'>, signal: AbortSignal, adapting?: AdaptingLimit): Promise<Permit>;
}

/**
 * The agent's engines. It spreads trials over them: a trial gets a seat at the engine that it fits and that
 * has the most free cores and memory. While it waits there, it moves if the engine fails, or if another one
 * has room and this one has not. A trial that runs never moves.
 */
export class Engines implements Disposable {
  readonly #pool: PooledEngine[] = [];
  readonly #models = new Map<string, Circuit>();
  readonly #parts: EnginesParts;
  readonly #seats = new Set<Seat>();
  /** Those that wait, in the order in which they asked. */
  readonly #line = new Set<Seat>();
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
    const { areSeveral, clock, observe } = this.#parts;
    const circuit = new Circuit({
      ...this.#parts,
      name: areSeveral ? `the engine ${engine.name}` : 'the engine',
      // Any image name would do: only an answer counts.
      async probe(signal) {
        using deadline = startDeadline(clock, probeMs, signal);
        await engine.findImage('offsite/base', deadline.signal);
      },
      observe: (event) => {
        observe(event);
        // Whether trials can run here could not be found out while it was down.
        if (areSeveral && event.kind === 'resumed')
          for (const seat of this.#seats) void this.#offer(pooled, seat);
      },
      changed: () => this.#serve(),
      ended: this.#disposed.signal,
    });
    const pooled = new PooledEngine(engine, circuit, areSeveral);
    this.#pool.push(pooled);
    return pooled;
  }

  /** Never rejects. */
  async #offer(pooled: PooledEngine, seat: Seat): Promise<void> {
    const fits = this.#parts.check.fits(pooled.engine, seat.spec, this.#disposed.signal);
    if (!(await fits.catch(() => false))) return;
    seat.fitting.add(pooled);
    this.#serve();
  }

  /**
   * A seat for a trial. The caller disposes it when the trial no longer runs. If no engine can run the trial,
   * the seat is at any engine, and the attempt fails there with the reason.
   */
  async seat(spec: TrialSpec, signal: AbortSignal): Promise<Seat> {
    const size = sizeOfTrial(spec);
    const fitting = await this.#fitting(spec, signal);
    const [first, ...others] = fitting;
    if (!first) throw new Error('the agent has no engine');
    const least = (one: PooledEngine, other: PooledEngine) =>
      other.loadWith(size) < one.loadWith(size) ? other : one;
    const seat: Seat = {
      spec,
      size,
      pooled: others.reduce(least, first),
      state: 'elsewhere',
      fitting: new Set(fitting),
      asks: 'engine',
      answer: () => undefined,
      enter: (admission, signal, adapting) => this.#enter(seat, admission, signal, adapting),
      [Symbol.dispose]: () => {
        this.#seats.delete(seat);
        seat.pooled.seats.delete(seat);
        this.#serve();
      },
    };
    this.#seats.add(seat);
    seat.pooled.seats.add(seat);
    return seat;
  }

  async #fitting(spec: TrialSpec, signal: AbortSignal): Promise<readonly PooledEngine[]> {
    const { pool } = this;
    if (pool.length === 1) return pool;
    const fits = await Promise.all(
      pool.map(({ isDown, engine }) => !isDown && this.#parts.check.fits(engine, spec, signal)),
    );
    const fitting = pool.filter((_, index) => fits[index]);
    if (fitting.length > 0) return fitting;
    const down = pool.filter(({ isDown }) => isDown);
    return down.length > 0 ? down : pool;
  }

  async #enter(
    seat: Seat,
    admission: Pick<Admission, 'enter'>,
    signal: AbortSignal,
    adapting: AdaptingLimit | undefined,
  ): Promise<Permit> {
    const { spec, size } = seat;
    const engineRoom = (signal: AbortSignal) => this.#ask(seat, 'room', signal);
    const model = { model: spec.model, maxParallel: maxParallelOf(spec), adapting };
    for (;;) {
      using taken = new DisposableStack();
      const passage = taken.use(await this.#model(spec.model).pass(signal));
      (await this.#ask(seat, 'engine', signal))[Symbol.dispose]();
      taken.use(await admission.enter({ spec, ...model, size, engineRoom }, signal));
      // The engine may have failed while this trial waited for its permit. If it works again, the room there
      // may be another trial's by now.
      if (!seat.pooled.isDown && seat.state === 'has room')
        return permitOf(passage, seat.pooled, taken.move());
    }
  }

  /** Resolves when the engine of a trial works, or has room for it; disposing gives the room back. */
  async #ask(seat: Seat, asks: Seat['asks'], signal: AbortSignal): Promise<Disposable> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = () => {
      this.#line.delete(seat);
      if (seat.state !== 'comes') seat.state = 'elsewhere';
      this.#serve();
    };
    seat.asks = asks;
    if (asks === 'room') seat.state = 'waits';
    seat.answer = (error) => {
      this.#line.delete(seat);
      if (error) reject(error);
      else resolve();
    };
    this.#line.add(seat);
    this.#serve();
    try {
      await abortable(promise, signal);
    } catch (error) {
      leave();
      throw error;
    }
    return { [Symbol.dispose]: leave };
  }

  /** Answers those in line whose wait is over, in their order. */
  #serve(): void {
    const full = new Set<PooledEngine>();
    for (const seat of this.#line) {
      const { pooled, asks, size } = seat;
      const others = [...seat.fitting].filter((one) => one !== pooled && !one.isDown);
      const roomy = others.find(
        (one) => !full.has(one) && one.hasRoomFor(size, ['has room', 'comes', 'waits']),
      );
      if (!pooled.isDown && asks === 'engine') seat.answer();
      else if (pooled.isDown && others.length > 0) this.#move(seat, roomy ?? others[0]);
      else if (pooled.isDown && asks === 'room') seat.answer();
      else if (pooled.isDown) {
        if (pooled.circuit.gaveUp) seat.answer(pooled.circuit.gaveUp);
      } else if (!full.has(pooled) && pooled.hasRoomFor(size, ['has room'])) {
        seat.state = 'has room';
        seat.answer();
      } else if (roomy) this.#move(seat, roomy);
      // A trial that needs much must not wait until no other one comes.
      else full.add(pooled);
    }
  }

  #move(seat: Seat, to: PooledEngine | undefined): void {
    if (!to) return;
    seat.pooled.seats.delete(seat);
    to.seats.add(seat);
    seat.pooled = to;
    seat.state = 'comes';
    seat.answer(new Moved('the trial moves to another engine'));
  }

  #model(name: string): Circuit {
    const kept = this.#models.get(name) ?? new Circuit({ ...this.#parts, name: `the model ${name}` });
    this.#models.set(name, kept);
    return kept;
  }

  /** Whether a model is down, so that its trials wait. */
  isModelOpen(model: string): boolean {
    return this.#models.get(model)?.isOpen === true;
  }

  /** Whether no engine answers. */
  get areAllDown(): boolean {
    return this.pool.every(({ isDown }) => isDown);
  }

  /** Finds out which engines answer. */
  async suspect(reason: string, signal: AbortSignal): Promise<void> {
    await Promise.all(this.pool.map(({ circuit }) => circuit.suspect(reason, signal)));
  }

  /** Resolves when an engine answers. */
  async anyAnswers(signal: AbortSignal): Promise<void> {
    using settled = new DisposableStack();
    const enough = new AbortController();
    settled.defer(() => enough.abort());
    const either = AbortSignal.any([signal, enough.signal]);
    await Promise.race(this.pool.map(({ circuit }) => circuit.pass(either)));
  }

  [Symbol.dispose](): void {
    this.#disposed.abort();
  }
}

function permitOf(model: Passage, { circuit }: PooledEngine, taken: DisposableStack): Permit {
  return {
    worked: () => model.worked(),
    async failed(cause, models, isModelUnreachable, signal) {
      const seen = models?.agent.modelFailure;
      if (cause.kind === 'model' && seen !== undefined) {
        // One that was answered counts, and one of a model that worked: it may itself bring the model down.
        const isUnanswered = isModelUnreachable && !models?.agent.acted;
        model.failed(seen, isUnanswered);
        return model.isTry && isUnanswered;
      }
      return cause.kind === 'infrastructure' && (await circuit.suspect(cause.message, signal));
    },
    [Symbol.dispose]: () => taken.dispose(),
  };
}
