import type { ClaimRequest, ClaimResponse } from '../../contract/claim.ts';
import { type ApiError, refuse } from '../api-error.ts';
import { holds, type Lease } from '../store/leases.ts';
import type { Call } from './call.ts';

/**
 * Grants an agent a lease on a trial, or renews it. While a lease holds, only its agent gets another one.
 * Times are by the service's clock. A 409 with `Retry-After` means that the trial is claimed now; without it,
 * the trial can never be claimed again.
 */
export function claimTrial(
  { stores, principal, now }: Call,
  { id, ordinal, agent, seconds, attempt }: ClaimRequest,
): ClaimResponse {
  const run = stores.runs.find(principal.organizationKey, id);
  if (!run) throw refuse(404, `There is no run ${id}.`);
  if (!run.local) throw refuse(409, 'The run was not started for local execution.');
  if (ordinal >= run.trials) {
    throw refuse(404, `The run has no trial ${ordinal}: it has ${run.trials}, counted from 0.`);
  }
  if (stores.trials.summaries(run.key).has(ordinal)) throw refuse(409, `Trial ${ordinal} has ended.`);
  const newest = stores.leases.read(run.key, ordinal);
  const isOwn = newest?.agent === agent && (attempt === undefined || attempt === newest.attempt);
  if (newest && !isOwn) refuseClaimed(newest, attempt, now);
  const lease: Lease = {
    agent,
    attempt: isOwn && attempt !== undefined ? attempt : (newest?.attempt ?? 0) + 1,
    expiresAt: now + seconds * 1000,
  };
  stores.leases.put(run.key, ordinal, lease);
  return { attempt: lease.attempt, expiresAt: new Date(lease.expiresAt).toISOString() };
}

/** Throws if somebody else's lease holds, and if a renewal comes too late because there is a newer lease. */
function refuseClaimed({ agent, expiresAt, attempt }: Lease, renewed: number | undefined, now: number): void {
  const until = new Date(expiresAt).toISOString();
  if (holds(expiresAt, now)) {
    throw refusal(
      `The agent ${JSON.stringify(agent)} has claimed the trial until ${until}.`,
      expiresAt - now,
    );
  }
  if (renewed === undefined) return;
  throw refusal(`Lease ${renewed} of the trial has ended: lease ${attempt} was granted since.`, 0);
}

function refusal(message: string, waitMs: number): ApiError {
  return refuse(409, message, { 'retry-after': String(Math.ceil(waitMs / 1000)) });
}
