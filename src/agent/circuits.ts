import { type BackoffLimits, backoff, type Clock } from '../base/clock.ts';
import { abortable, startDeadline } from '../base/deadline.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import type { Engine } from '../engine/engine.ts';
import type { Cause } from '../record/cause.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { mostParallel } from '../suite/model-config.ts';
import type { TrialSpec } from '../trial/spec.ts';
import { type AdaptingLimit, type Admission, sizeOfTrial } from './admission.ts';

/** Milliseconds between two tries of what is down. */
const waits: BackoffLimits = { first: 2_000, longest: 60_000 };

export interface CircuitParts {
  /** What the circuit guards, for messages: `the engine`, `the model small`. */
  name: string;
  clock: Clock;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /**
   * Checks cheaply whether the guarded thing works; rejects if it does not. Without a probe, one trial is let
   * through to find out.
   */
  probe?: ((signal: AbortSignal) => Promise<unknown>) | undefined;
  /** Milliseconds that trials wait before they give up with `CIRCUIT_OPEN`. */
  patienceMs: number;
  /** Called when trials begin to wait, and when they continue. */
  observe(event: CircuitEvent): void;
}

export type CircuitEvent =
  /** `upToMs`: how long trials wait until the run gives up; absent if they wait without end. */
  { kind: 'waiting'; for: string; reason: string; upToMs?: number } | { kind: 'resumed'; for: string };

/**
 * Lets a trial through. The trial reports what it saw. If it disposes the passage without a report, the next
 * trial is let through.
 */
export interface Passage extends Disposable {
  worked(): void;
  failed(reason: string): void;
}

type State =
  | { _tag: 'closed' }
  | { _tag: 'open'; reason: string; failures: number; waitedMs: number; busy: boolean };

/**
 * Makes trials wait for something that is down, instead of letting them fail one after another. Meanwhile one
 * trial, or a probe, tries it again with growing pauses.
 */
export class Circuit {
  readonly #parts: CircuitParts;
  #state: State = { _tag: 'closed' };
  /** Resolved and replaced at every change of state. */
  #change = Promise.withResolvers<void>();

  constructor(parts: CircuitParts) {
    this.#parts = parts;
  }

  get isOpen(): boolean {
    return this.#state._tag === 'open';
  }

  /**
   * Resolves when a trial may go through. Rejects with `CIRCUIT_OPEN` if the circuit stays open for too long,
   * and if the signal aborts.
   */
  async pass(signal: AbortSignal): Promise<Passage> {
    for (;;) {
      signal.throwIfAborted();
      const state = this.#state;
      if (state._tag === 'closed') return this.#passage(() => undefined);
      if (state.busy) {
        await abortable(this.#change.promise, signal);
        continue;
      }
      state.busy = true;
      let passed = false;
      try {
        await this.#wait(state, signal);
        if (this.#parts.probe) {
          await this.#probe(this.#parts.probe, state, signal);
        } else {
          passed = true;
          return this.#passage(() => this.#release(state));
        }
      } finally {
        if (!passed) this.#release(state);
      }
    }
  }

  /** Opens the circuit if the probe fails. Resolves with whether the circuit is open. */
  async suspect(reason: string, signal: AbortSignal): Promise<boolean> {
    const { probe } = this.#parts;
    if (this.isOpen || !probe) return this.isOpen;
    try {
      await probe(signal);
      return false;
    } catch {
      signal.throwIfAborted();
      this.#open(reason);
      return true;
    }
  }

  /** Closes the circuit if the probe succeeds, however long it has been open. Rejects if it does not. */
  async tryAgain(signal: AbortSignal): Promise<void> {
    await this.#parts.probe?.(signal);
    this.#close();
  }

  async #wait(state: State & { _tag: 'open' }, signal: AbortSignal): Promise<void> {
    const { clock, random, patienceMs, name } = this.#parts;
    if (state.waitedMs >= patienceMs) {
      throw new OffsiteError(
        `${name} was still down after ${Math.round(patienceMs / 1000)} s: ${state.reason}`,
        {
          code: 'CIRCUIT_OPEN',
          kind: 'infrastructure',
          hint: 'When it works again, `offsite resume` runs the remaining trials. Finished results are kept.',
        },
      );
    }
    // We add up waits, because a clock may be set while we wait. The wait is never 0, or probing would be a
    // busy loop.
    const ms = 250 + backoff(state.failures, waits, random);
    await clock.sleep(ms, signal);
    state.waitedMs += ms;
  }

  async #probe(
    probe: (signal: AbortSignal) => Promise<unknown>,
    state: State & { _tag: 'open' },
    signal: AbortSignal,
  ) {
    try {
      await probe(signal);
    } catch (error) {
      signal.throwIfAborted();
      state.failures++;
      state.reason = error instanceof Error ? error.message : String(error);
      return;
    }
    this.#close();
  }

  #passage(release: () => void): Passage {
    return {
      worked: () => this.#close(),
      failed: (reason) => this.#open(reason),
      [Symbol.dispose]: release,
    };
  }

  #open(reason: string): void {
    if (this.#state._tag === 'open') {
      this.#state.failures++;
      this.#state.reason = reason;
      return;
    }
    this.#state = { _tag: 'open', reason, failures: 1, waitedMs: 0, busy: false };
    const { name, patienceMs, observe } = this.#parts;
    const upTo = Number.isFinite(patienceMs) ? { upToMs: patienceMs } : {};
    observe({ kind: 'waiting', for: name, reason, ...upTo });
    this.#changed();
  }

  #close(): void {
    if (this.#state._tag === 'closed') return;
    this.#state = { _tag: 'closed' };
    this.#parts.observe({ kind: 'resumed', for: this.#parts.name });
    this.#changed();
  }

  #release(state: State & { _tag: 'open' }): void {
    state.busy = false;
    this.#changed();
  }

  #changed(): void {
    const { resolve } = this.#change;
    this.#change = Promise.withResolvers<void>();
    resolve();
  }
}

/** Milliseconds within which a working engine answers. */
const probeMs = 10_000;

/** What the circuits of an agent share. */
export type SharedCircuitParts = Pick<CircuitParts, 'clock' | 'random' | 'patienceMs' | 'observe'>;

export interface CircuitsParts extends SharedCircuitParts {
  engine: Engine;
  /** For messages. Default: `the engine`. */
  engineName?: string;
  /** The circuits of models, if other engines share them. */
  models?: Map<string, Circuit>;
}

/** A permit to run a trial. Disposing gives it back. */
export interface Permit extends Disposable {
  worked(): void;
  /**
   * Reports why the attempt failed, and what its models did. Resolves with whether the engine is down; if so,
   * the attempt does not count. Only a failure that the gateway saw opens a model's circuit, because an agent
   * can make a harness say anything.
   */
  failed(cause: Cause, models: TrialRecord['models'], signal: AbortSignal): Promise<boolean>;
}

/** The circuits of what trials depend on: the engine, and each model. */
export class Circuits {
  readonly #parts: CircuitsParts;
  readonly #engine: Circuit;
  readonly #models: Map<string, Circuit>;

  constructor(parts: CircuitsParts) {
    this.#parts = parts;
    this.#models = parts.models ?? new Map();
    // Any image name would do: only an answer counts.
    const probe = async (signal: AbortSignal) => {
      using deadline = startDeadline(parts.clock, probeMs, signal);
      await parts.engine.findImage('offsite/base', deadline.signal);
    };
    this.#engine = new Circuit({ ...parts, name: parts.engineName ?? 'the engine', probe });
  }

  /**
   * Resolves when engine and model seem to work and the trial has its permit.
   *
   * @param adapting the model's limit, if it adapts
   */
  async enter(
    spec: TrialSpec,
    admission: Pick<Admission, 'enter'>,
    signal: AbortSignal,
    adapting?: AdaptingLimit,
  ): Promise<Permit> {
    const { model: name } = spec;
    const size = sizeOfTrial(spec);
    const applicant = { spec, model: name, maxParallel: maxParallelOf(spec), size, adapting };
    for (;;) {
      using taken = new DisposableStack();
      const model = taken.use(await this.#model(name).pass(signal));
      taken.use(await this.#engine.pass(signal));
      taken.use(await admission.enter(applicant, signal));
      // The engine may have failed while this trial waited for its permit.
      if (this.#engine.isOpen) continue;
      return this.#permit(model, taken.move());
    }
  }

  /** Whether a model is down, so that its trials wait. */
  isOpen(model: string): boolean {
    return this.#models.get(model)?.isOpen === true;
  }

  get isEngineOpen(): boolean {
    return this.#engine.isOpen;
  }

  /** Finds out whether the engine answers, and opens its circuit if not. */
  async suspectEngine(reason: string, signal: AbortSignal): Promise<void> {
    await this.#engine.suspect(reason, signal);
  }

  /** Resolves when the engine's circuit is closed. */
  async engineAnswers(signal: AbortSignal): Promise<void> {
    (await this.#engine.pass(signal))[Symbol.dispose]();
  }

  /** Asks an engine that is down once, after trials gave up waiting. Rejects if it does not answer. */
  async tryEngine(signal: AbortSignal): Promise<void> {
    await this.#engine.tryAgain(signal);
  }

  #permit(model: Passage, taken: DisposableStack): Permit {
    return {
      worked: () => model.worked(),
      failed: async (cause, models, signal) => {
        const seen = models?.agent.modelFailure;
        // The attempt counts even if trials now wait for the model: one trial's failure does not prove that
        // its model is down.
        if (cause.kind === 'model' && seen !== undefined) model.failed(seen);
        return cause.kind === 'infrastructure' && (await this.#engine.suspect(cause.message, signal));
      },
      [Symbol.dispose]: () => taken.dispose(),
    };
  }

  #model(name: string): Circuit {
    const kept = this.#models.get(name);
    if (kept) return kept;
    const circuit = new Circuit({ ...this.#parts, name: `the model ${name}` });
    this.#models.set(name, circuit);
    return circuit;
  }
}

/** Requests that a trial's model takes at a time. */
export function maxParallelOf({ modelConfig }: Pick<TrialSpec, 'modelConfig'>): number | undefined {
  const limit = modelConfig && 'maxParallel' in modelConfig ? modelConfig.maxParallel : undefined;
  return limit === undefined ? undefined : mostParallel(limit);
}
