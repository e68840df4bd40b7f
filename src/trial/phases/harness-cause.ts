import type { HarnessEnding, Runner } from '../../harness/runner.ts';
import type { Cause } from '../../record/cause.ts';
import type { Conversation } from '../conversation.ts';
import type { PhaseInput } from './phase.ts';

/**
 * The cause if a harness ended badly before it asked its model anything: it is not installed, configured or
 * called correctly, and no agent was there to fail. Undefined if the agent's model was asked, or may have
 * been.
 *
 * An agent cannot make its trial void in this way: it acts only through its model's answers, and the gateway,
 * which the agent cannot reach, records those.
 */
export async function harnessCause(
  runner: Runner,
  { ending, lastOutput }: Conversation,
  { spec, models }: PhaseInput,
): Promise<Cause | undefined> {
  // The `command` harness is any program, and may be an agent without a model.
  if (runner.wires !== 'any' && runner.wires.length === 0) return undefined;
  if (!spec.modelConfig || !models || models.session.overBudget.aborted) return undefined;
  const problem = problemOf(ending);
  if (problem === undefined) return undefined;
  // Over an open network, it may have asked a model that is not ours.
  if (spec.sandbox.network === 'open') return undefined;
  const { usage, connections } = await models.session.account();
  if (usage.some(({ role }) => role === 'agent')) return undefined;
  if (connections.some(({ receivedBytes }) => receivedBytes > 0)) return undefined;
  return {
    kind: 'harness',
    phase: 'harness',
    message: `${spec.harness} ended with an error before it asked its model anything: ${problem}`,
    output: lastOutput,
  };
}

/** What was wrong with the ending. Undefined if it was normal or if Offsite stopped the harness. */
function problemOf(ending: HarnessEnding): string | undefined {
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
      return 'it wrote more than the sandbox allows';
    case 'out-of-memory':
      return 'it used more memory than the sandbox has';
    case 'stopped':
      return undefined;
  }
}
