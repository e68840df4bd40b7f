import type { Clock } from '../clock.ts';
import { startDeadline } from '../engine/deadline.ts';
import type { Engine } from '../engine/engine.ts';
import type { ModelAccount } from '../gateway/gateway.ts';
import type { Cause } from '../trial/result.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { Admission } from './admission.ts';
import { Circuit, type CircuitEvent, type Passage } from './circuit.ts';

/** Milliseconds in which a working engine says that it is there. */
const probeMs = 10_000;

export interface CircuitsParts {
  engine: Engine;
  clock: Clock;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** Milliseconds that trials wait for what is down. */
  patienceMs: number;
  observe(event: CircuitEvent): void;
}

/** A trial's permit to run. Disposing gives it back. */
export interface Permit extends Disposable {
  worked(): void;
  /**
   * Tells what spoilt the attempt, and what its models did; says whether all of it is down, so that the attempt does not count.
   * Only what the gateway saw of a model keeps others from it: a harness can be made to say anything.
   */
  failed(cause: Cause, models: ModelAccount | undefined, signal: AbortSignal): Promise<boolean>;
}

/** What trials depend on and may find down: the engine, and each model. */
export class Circuits {
  readonly #parts: CircuitsParts;
  readonly #engine: Circuit;
  readonly #models = new Map<string, Circuit>();

  constructor(parts: CircuitsParts) {
    this.#parts = parts;
    // Any image would do: what counts is an answer.
    const probe = async (signal: AbortSignal) => {
      using deadline = startDeadline(parts.clock, probeMs, signal);
      await parts.engine.findImage('offsite/base', deadline.signal);
    };
    this.#engine = new Circuit({ ...parts, name: 'the engine', probe });
  }

  /** Resolves when all that a trial depends on seems to work, and it has its place. */
  async enter(spec: TrialSpec, admission: Admission, signal: AbortSignal): Promise<Permit> {
    const applicant = { model: spec.model, maxParallel: maxParallelOf(spec) };
    for (;;) {
      using taken = new DisposableStack();
      const model = taken.use(await this.#model(spec.model).pass(signal));
      taken.use(await this.#engine.pass(signal));
      taken.use(await admission.enter(applicant, signal));
      // It may have gone down while this one waited for its place.
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

  #permit(model: Passage, taken: DisposableStack): Permit {
    return {
      worked: () => model.worked(),
      failed: async (cause, models, signal) => {
        const seen = models?.agent.modelFailure;
        // One trial's failure is no proof that its model is down: attempts at it are counted, however many wait.
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
  return modelConfig && 'maxParallel' in modelConfig ? modelConfig.maxParallel : undefined;
}
