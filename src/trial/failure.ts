import { firstThrown, messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { Cause, PhaseName } from '../record/cause.ts';

/** Thrown when a trial cannot get a verdict. `failure` says what went wrong and who caused it. */
export class TrialFailure extends OffsiteError {
  override readonly name = 'TrialFailure';
  readonly failure: Cause;

  constructor(failure: Cause, cause?: unknown) {
    super(failure.message, { code: 'TRIAL_VOID', kind: 'infrastructure', cause });
    this.failure = failure;
  }
}

/** The failure for a case whose image, build or service cannot be used. */
export function unusable(message: string): TrialFailure {
  return new TrialFailure({ kind: 'task', phase: 'sandbox', message });
}

/**
 * The cause that a thrown error stands for: the error's own cause if it has one, otherwise infrastructure.
 */
export function causeOf(caught: unknown, phase: PhaseName): Cause {
  // If removing the sandbox fails too, that must not hide why the trial was given up.
  const thrown = firstThrown(caught);
  if (thrown instanceof TrialFailure) return thrown.failure;
  if (thrown instanceof OffsiteError) {
    const message = thrown.hint === undefined ? thrown.message : `${thrown.message}\n${thrown.hint}`;
    // The author of the case or the profile put the key there, so another attempt would end the same way.
    const isAuthors = thrown.code === 'KEY_IN_SANDBOX';
    return { kind: isAuthors ? 'task' : 'infrastructure', phase, message };
  }
  // This is a bug in Offsite. The trial is void, never failed. The stack trace helps to fix the bug.
  const stack = thrown instanceof Error ? thrown.stack : undefined;
  return { kind: 'infrastructure', phase, message: `unexpected: ${messageOf(thrown)}`, output: stack };
}
