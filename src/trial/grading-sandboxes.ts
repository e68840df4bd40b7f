import type { Container } from '../engine/container.ts';
import type { StartedSandbox } from './sandboxes.ts';
import type { TrialSpec } from './spec.ts';
import type { TrialParts } from './trial-parts.ts';

interface Given {
  spec: TrialSpec;
  parts: Pick<TrialParts, 'sandboxes'>;
  signal: AbortSignal;
}

/**
 * A sandbox of the trial's image in which no harness ran: started once it is asked for, or ahead of that.
 * Disposing gives it back.
 */
export class FreshSandbox implements Disposable {
  readonly #given: Given;
  #started: Promise<StartedSandbox> | undefined;

  constructor(given: Given) {
    this.#given = given;
  }

  /** Begins it, where it will be asked for later. What goes wrong is thrown to who asks. */
  startAhead(): void {
    this.sandbox().catch(() => undefined);
  }

  sandbox(): Promise<StartedSandbox> {
    const { spec, parts, signal } = this.#given;
    this.#started ??= parts.sandboxes.takeForGrading(spec, signal);
    return this.#started;
  }

  async container(): Promise<Container> {
    return (await this.sandbox()).container;
  }

  [Symbol.dispose](): void {
    if (this.#started) this.#given.parts.sandboxes.giveBack(this.#started);
  }
}

/**
 * The fresh sandboxes in which one trial is graded. Verify and the validator never share one: what the work
 * does to the one, while verify runs it, does not reach the other.
 */
export class GradingSandboxes implements Disposable {
  readonly verify: FreshSandbox;
  readonly validator: FreshSandbox;
  readonly #spec: TrialSpec;

  constructor(given: Given) {
    this.#spec = given.spec;
    this.verify = new FreshSandbox(given);
    this.validator = new FreshSandbox(given);
  }

  /** Begins those that the case is graded in. */
  startAhead(): void {
    const { verify, verifyPlace, validator } = this.#spec;
    if (verify !== undefined && verifyPlace.in === 'fresh') this.verify.startAhead();
    if (validator) this.validator.startAhead();
  }

  [Symbol.dispose](): void {
    this.verify[Symbol.dispose]();
    this.validator[Symbol.dispose]();
  }
}
