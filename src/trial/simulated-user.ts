import { messageOf, OffsiteError } from '../offsite-error.ts';
import { openSimulatedUser, type UserTurn } from '../validate/simulated-user.ts';
import type { Answerer, Utterance } from './conversation.ts';
import type { TrialModels } from './models.ts';
import type { TrialSpec } from './spec.ts';

/**
 * Who answers the harness in a trial: the case's simulated user, up to their limit of messages. Undefined
 * where the case has none.
 */
export function answererOf({ user }: TrialSpec, models: TrialModels | undefined): Answerer | undefined {
  if (!user || !models) return undefined;
  const { goal, prompt, turns } = user;
  const played = openSimulatedUser({
    goal,
    prompt,
    chat: (request, signal) => models.session.chat('user', request, signal),
  });
  return async (said, signal) => {
    if (said.filter(({ from }) => from === 'user').length >= turns) {
      return { ends: `after ${turns} messages, as many as they may send` };
    }
    const turn = await answered(played.next, said, signal, models.session.overBudget);
    return 'says' in turn ? turn : { ends: `${turn.ends}: ${turn.why}` };
  };
}

type Next = (said: readonly Utterance[], signal: AbortSignal) => Promise<UserTurn>;
type Ending = { ends: string; why: string };

/**
 * The user's answer, or an end of the conversation where what the harness did is the reason that there is
 * none: its words may be too long for the user's model, or talk it out of answering. A control tells, in
 * which the harness has said nothing at all: where that fails too, it is the user's model, and the error is
 * thrown. A stumble of the model's does not come twice, with a control between that went well.
 */
async function answered(
  next: Next,
  said: readonly Utterance[],
  signal: AbortSignal,
  overBudget: AbortSignal,
): Promise<UserTurn | Ending> {
  try {
    return await next(said, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof OffsiteError)) throw error;
    // Agent and user have one budget, and the harness has used it.
    if (overBudget.aborted) return { ends: 'unanswered', why: messageOf(error) };
    const works = await next([...said.slice(0, 1), { from: 'harness', text: '' }], signal).then(
      () => true,
      () => false,
    );
    signal.throwIfAborted();
    // The control too may meet the end of the budget.
    if (!works && !overBudget.aborted) throw error;
  }
  try {
    return await next(said, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof OffsiteError)) throw error;
    return {
      ends: 'unanswered',
      why: `what the harness said kept their model from an answer: ${error.message}`,
    };
  }
}
