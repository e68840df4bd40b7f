import type { Container } from '../engine/container.ts';
import type { TrialServices } from './services/trial-services.ts';
import type { TrialSpec } from './spec.ts';
import type { StartedSandbox } from './started-sandbox.ts';
import { testsSpec } from './tests/tests-spec.ts';
import type { TrialParts } from './trial-parts.ts';

interface GradingContext {
  spec: TrialSpec;
  parts: Pick<TrialParts, 'sandboxes'>;
  signal: AbortSignal;
  /** The services that its sandboxes reach. Undefined: each sandbox gets new ones, if the case has some. */
  services: TrialServices | undefined;
}

/**
 * A sandbox of the trial's image in which no harness ran. It starts on first use or with `start`.
 * Disposing releases it.
 */
export class FreshSandbox implements Disposable {
  readonly #context: GradingContext;
  #started: Promise<StartedSandbox> | undefined;

  constructor(context: GradingContext) {
    this.#context = context;
  }

  /**
   * Starts the sandbox before it is needed. An error is thrown to the code that asks for the sandbox later.
   */
  start(): void {
    this.sandbox().catch(() => undefined);
  }

  sandbox(): Promise<StartedSandbox> {
    const { spec, parts, signal, services } = this.#context;
    this.#started ??= parts.sandboxes.takeForGrading(spec, signal, services);
    return this.#started;
  }

  async container(): Promise<Container> {
    return (await this.sandbox()).container;
  }

  [Symbol.dispose](): void {
    if (this.#started) this.#context.parts.sandboxes.giveBack(this.#started);
  }
}

/**
 * The fresh sandboxes that grade one trial. Verify and the validator never share one: what the work does to
 * verify's sandbox must not reach the validator's.
 */
export class GradingSandboxes implements Disposable {
  readonly verify: FreshSandbox;
  readonly validator: FreshSandbox;
  /** For tests that do not run in the agent's own sandbox. */
  readonly tests: FreshSandbox;
  readonly #spec: TrialSpec;

  constructor(context: GradingContext) {
    this.#spec = context.spec;
    this.verify = new FreshSandbox(context);
    this.validator = new FreshSandbox(context);
    // With services that no agent has used.
    this.tests = new FreshSandbox({ ...context, spec: testsSpec(context.spec), services: undefined });
  }

  /** Starts the sandboxes that the case is graded in. */
  start(): void {
    const { verify, verifyPlace, validator, tests } = this.#spec;
    if (verify !== undefined && verifyPlace.in === 'fresh') this.verify.start();
    if (validator) this.validator.start();
    if (tests?.fresh) this.tests.start();
  }

  [Symbol.dispose](): void {
    this.verify[Symbol.dispose]();
    this.validator[Symbol.dispose]();
    this.tests[Symbol.dispose]();
  }
}
