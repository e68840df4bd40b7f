import { hintFor } from '../../gateway/chat/model-errors.ts';
import type { ModelAccount } from '../../gateway/gateway.ts';
import { saysTooLong } from '../../harness/model-failure.ts';
import type { HarnessEnding, Runner } from '../../harness/runner.ts';
import type { Cause } from '../../record/cause.ts';
import type { PhaseInput } from './phase.ts';

/**
 * Who caused the end of a harness that drove its model.
 *
 * Once the model has answered, the agent may have acted: it can kill its CLI and write anything into the
 * CLI's output. From then on, neither proves an outage or a broken CLI. The gateway's own account does,
 * because the agent cannot reach it. If that account shows no failure, the agent caused the end, and its work
 * is graded. The same holds from the start for a runner whose program may itself be the agent.
 */
export async function endingCause(
  ending: HarnessEnding,
  { wires, reportsModelFailure = true }: Pick<Runner, 'wires' | 'reportsModelFailure'>,
  { models }: Pick<PhaseInput, 'models'>,
): Promise<Cause | undefined> {
  switch (ending.ended) {
    case 'exited': {
      if (reportsModelFailure) return undefined;
      const account = await models?.session.account();
      const failure = account?.agent.modelFailure;
      return failure === undefined ? undefined : modelCause(failure, account);
    }
    case 'timed-out':
      return agentCause(`the harness was stopped after ${ending.afterMs / 1000} s`);
    case 'out-of-disk':
      return agentCause('the harness was stopped because it wrote more than the sandbox allows');
    case 'out-of-memory':
      return agentCause('the harness was killed because it used more memory than the sandbox has');
    case 'agent-failed': {
      const account = await models?.session.account();
      const { acted, lastFailure } = account?.agent ?? {};
      const isTooLong = [ending.message, lastFailure ?? ''].some(saysTooLong);
      if (wires.length === 0 || acted !== false || lastFailure === undefined || !isTooLong)
        return agentCause(ending.message);
      // No agent has made this conversation long.
      const message = "the model's context is too small for the first request of this harness";
      return modelCause(`${message}: ${lastFailure}\nRaise the context that its server holds.`, account);
    }
    case 'stopped':
      return agentCause(ending.message);
    case 'model-failed':
    case 'runner-broke': {
      const { message } = ending;
      const account = await models?.session.account();
      const agent = account?.agent;
      const mayBeAgents = agent?.acted || wires.length === 0;
      const hasFailed = agent?.modelFailure !== undefined;
      // A CLI may also break over what is no answer of a model.
      const isModels = mayBeAgents
        ? hasFailed && ending.ended === 'model-failed'
        : hasFailed || ending.ended === 'model-failed';
      if (isModels) return modelCause(withServersWords(message, agent?.lastFailure), account);
      return mayBeAgents ? agentCause(message) : { kind: 'infrastructure', phase: 'harness', message };
    }
  }
}

function modelCause(message: string, account: ModelAccount | undefined): Cause {
  const status = account?.exchanges.findLast(({ role }) => role === 'agent')?.status;
  return { kind: 'model', phase: 'harness', message: withHint(message, status) };
}

/** The CLI's own message may be a guess, so what the server said comes first. */
function withServersWords(message: string, failure: string | undefined): string {
  const words = failure?.replace(/^.*?: answered[^:]*: /, '');
  if (words === undefined || message.includes(words)) return message;
  return `${failure}\nThe harness says: ${message}`;
}

/** Statuses that last until somebody changes the configuration. */
const wrongSettings: ReadonlySet<number | undefined> = new Set([401, 403, 404]);

function withHint(message: string, status: number | undefined): string {
  return status !== undefined && wrongSettings.has(status) ? `${message}\n${hintFor(status)}` : message;
}

function agentCause(message: string): Cause {
  return { kind: 'agent', phase: 'harness', message };
}
