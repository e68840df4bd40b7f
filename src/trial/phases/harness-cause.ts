import type { HarnessEnding, Runner } from '../../harness/runner.ts';
import type { Conversation } from '../conversation.ts';
import type { Cause } from '../result.ts';
import type { PhaseInput } from './phase.ts';

/**
 * That a harness which drives a model came to a bad end before it asked that model anything: it is not
 * installed, configured or called as it has to be, and no agent was there to fail. Undefined where the
 * agent's model was asked, or may have been.
 *
 * An agent cannot earn itself a void so: it acts by its model's answers alone, and the gateway, out of its
 * reach, keeps the account of them.
 */
export async function harnessCause(
  runner: Runner,
  { ending, lastOutput }: Conversation,
  { spec, models }: PhaseInput,
): Promise<Cause | undefined> {
  // The `command` harness is any program, and may be an agent without a model.
  if (runner.wires !== 'any' && runner.wires.length === 0) return undefined;
  if (!spec.modelConfig || !models || models.session.overBudget.aborted) return undefined;
  const trouble = troubleOf(ending);
  if (trouble === undefined) return undefined;
  // By an open network it may have asked another model than ours.
  if (spec.sandbox.network === 'open') return undefined;
  const { usage, connections } = await models.session.account();
  if (usage.some(({ role }) => role === 'agent')) return undefined;
  if (connections.some(({ receivedBytes }) => receivedBytes > 0)) return undefined;
  return {
    kind: 'harness',
    phase: 'harness',
    message: `${spec.harness} ended with an error before it asked its model anything: ${trouble}`,
    output: lastOutput,
  };
}

/** What was wrong with an end; undefined of one that was as it should be, or that we brought about. */
function troubleOf(ending: HarnessEnding): string | undefined {
  switch (ending.ended) {
    case 'exited':
      return ending.exitCode === 0 ? undefined : `it exited with ${ending.exitCode}`;
    case 'agent-failed':
    case 'model-failed':
    case 'runner-broke':
      return ending.message;
    case 'timed-out':
      return `it did nothing for ${ending.afterMs / 1000} s`;
    case 'out-of-disk':
      return 'it wrote more than the sandbox may';
    case 'out-of-memory':
      return 'it used more memory than the sandbox has';
    case 'stopped':
      return undefined;
  }
}
