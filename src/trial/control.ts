import type { Container } from '../engine/container.ts';
import type { PhaseInput } from './phases/phase.ts';
import type { Cause, TrialResult } from './result.ts';
import type { StartedSandbox } from './sandboxes.ts';

type Given = Pick<PhaseInput, 'spec' | 'parts' | 'signal'>;

/** A sandbox of the trial's image in which no harness ran: started once it is asked for, or ahead of that; given back when disposed of. */
export class FreshSandbox implements Disposable {
  readonly #given: Given;
  #started: Promise<StartedSandbox> | undefined;

  constructor(given: Given) {
    this.#given = given;
  }

  /** Begins it, where it will be asked for later. What goes wrong is thrown to who asks. */
  startAhead(): void {
    this.#start().catch(() => undefined);
  }

  async container(): Promise<Container> {
    return (await this.#start()).container;
  }

  [Symbol.dispose](): void {
    if (this.#started) this.#given.parts.sandboxes.giveBack(this.#started);
  }

  #start(): Promise<StartedSandbox> {
    const { spec, parts, signal } = this.#given;
    this.#started ??= parts.sandboxes.takeForGrading(spec, signal);
    return this.#started;
  }
}

/**
 * The outcome where grading could not be started in the sandbox. `starts` is tried in a fresh one, in which no harness ever ran: if it
 * works there, the harness removed what grading needs (bash, say) and must not be excused for that, so that the trial is failed.
 * Else it is void, for `cause`.
 */
export async function gradingPrevented(
  input: PhaseInput,
  cause: Cause,
  starts: (fresh: Container) => Promise<boolean>,
): Promise<Partial<TrialResult>> {
  if (!(await starts(await input.fresh.container()))) return { verdict: 'void', cause };
  const message = `${cause.message}; it can be in a sandbox that no harness ran in`;
  return { verdict: 'failed', cause: input.found.cause ?? { ...cause, kind: 'agent', message } };
}
