import type { Container } from '../engine/container.ts';
import type { PhaseInput } from './phases/phase.ts';
import type { Cause, TrialResult } from './result.ts';

/**
 * The outcome where grading could not be started in the sandbox. `starts` is tried in a fresh one, in which no harness ever ran: if it
 * works there, the harness removed what grading needs (bash, say) and must not be excused for that, so that the trial is failed.
 * Else it is void, for `cause`.
 */
export async function gradingPrevented(
  { spec, parts, signal, found }: PhaseInput,
  cause: Cause,
  starts: (fresh: Container) => Promise<boolean>,
): Promise<Partial<TrialResult>> {
  const fresh = await parts.sandboxes.take(spec, signal);
  using given = new DisposableStack();
  given.defer(() => parts.sandboxes.giveBack(fresh));
  if (!(await starts(fresh.container))) return { verdict: 'void', cause };
  const message = `${cause.message}; it can be in a sandbox that no harness ran in`;
  return { verdict: 'failed', cause: found.cause ?? { ...cause, kind: 'agent', message } };
}
