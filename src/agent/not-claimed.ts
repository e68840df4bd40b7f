import { OffsiteError } from '../base/offsite-error.ts';
import { claimAnswers } from '../bounds/service.ts';
import type { Conflict } from '../client/refusal.ts';

export type WhyNotClaimed =
  /** The trial has ended, or can never be claimed. */
  | { kind: 'ended' }
  /** Another agent has it. It may be free in the given milliseconds. */
  | { kind: 'held'; waitMs: number }
  /** The service could not be asked, or refused to answer. */
  | { kind: 'unasked' };

/** This agent must not run a trial now. */
export class NotClaimed extends OffsiteError {
  override readonly name = 'NotClaimed';
  readonly why: WhyNotClaimed;

  constructor(why: WhyNotClaimed, message: string, cause: unknown) {
    super(message, { code: 'NOT_CLAIMED', kind: 'infrastructure', cause });
    this.why = why;
  }
}

/** The fewest milliseconds until a trial is claimed again, whatever a service says. */
const shortestWaitMs = 1_000;

/** What a service's refusal of a claim means: `Retry-After` says when the trial may be free. */
export function notClaimed(refusal: Conflict): NotClaimed {
  const { retryAfterMs, said } = refusal;
  if (retryAfterMs === undefined) return new NotClaimed({ kind: 'ended' }, said, refusal);
  // The other agent may end the trial earlier, or renew its lease.
  const waitMs = Math.max(shortestWaitMs, Math.min(retryAfterMs, claimAnswers.time.held));
  return new NotClaimed({ kind: 'held', waitMs }, said, refusal);
}
