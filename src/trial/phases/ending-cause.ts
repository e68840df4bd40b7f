import type { HarnessEnding } from '../../harness/runner.ts';
import type { Cause } from '../result.ts';
import type { PhaseInput } from './phase.ts';

/**
 * Whose doing the end of a harness is, where it drove its model.
 *
 * Once the model has answered, the agent may have acted: it can kill its CLI, and write what it likes into
 * what the CLI prints. So neither is evidence any more for an outage or for a CLI that does not work; the
 * gateway's own account, out of the agent's reach, is. What it does not show is the agent's doing, and its
 * work is graded.
 */
export async function endingCause(
  ending: HarnessEnding,
  { models }: Pick<PhaseInput, 'models'>,
): Promise<Cause | undefined> {
  switch (ending.ended) {
    case 'exited':
      return undefined;
    case 'timed-out':
      return agentCause(`the harness was stopped after ${ending.afterMs / 1000} s`);
    case 'out-of-disk':
      return agentCause('the harness was stopped for writing more than the sandbox may');
    case 'out-of-memory':
      return agentCause('the harness was killed for using more memory than the sandbox has');
    case 'agent-failed':
    case 'stopped':
      return agentCause(ending.message);
    case 'model-failed':
    case 'runner-broke': {
      const { message } = ending;
      const agent = (await models?.session.account())?.agent;
      const isModels = ending.ended === 'model-failed' && (!agent?.acted || agent.modelFailure !== undefined);
      if (isModels) return { kind: 'model', phase: 'harness', message };
      return agent?.acted ? agentCause(message) : { kind: 'infrastructure', phase: 'harness', message };
    }
  }
}

function agentCause(message: string): Cause {
  return { kind: 'agent', phase: 'harness', message };
}
