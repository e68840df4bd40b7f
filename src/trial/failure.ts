import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { Cause, PhaseName } from './result.ts';

/** A trial that cannot get a verdict, with whose trouble it is. */
export class TrialFailure extends OffsiteError {
  override readonly name = 'TrialFailure';
  readonly failure: Cause;

  constructor(failure: Cause, cause?: unknown) {
    super(failure.message, { code: 'TRIAL_VOID', kind: 'infrastructure', cause });
    this.failure = failure;
  }
}

/** Whose trouble a thrown error is: what it says itself, else the infrastructure's. */
export function causeOf(thrown: unknown, phase: PhaseName): Cause {
  // A sandbox that could not be removed either must not hide why the trial was given up.
  if (thrown instanceof SuppressedError) return causeOf(thrown.suppressed, phase);
  if (thrown instanceof TrialFailure) return thrown.failure;
  if (thrown instanceof OffsiteError) {
    const message = thrown.hint === undefined ? thrown.message : `${thrown.message}\n${thrown.hint}`;
    // Removing /bin, say, must not earn the harness another try.
    const harnessDidIt = phase === 'harness' && thrown.code === 'ENGINE_CONTAINER_DAMAGED';
    // Who wrote the case, or the profile, put it there; another try would be the same.
    const isCases = thrown.code === 'KEY_IN_SANDBOX';
    return { kind: harnessDidIt ? 'agent' : isCases ? 'task' : 'infrastructure', phase, message };
  }
  // A defect of ours. The trial is void, never failed; the stack is what mends it.
  const stack = thrown instanceof Error ? thrown.stack : undefined;
  return { kind: 'infrastructure', phase, message: `unexpected: ${messageOf(thrown)}`, output: stack };
}
