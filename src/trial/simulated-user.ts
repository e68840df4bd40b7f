import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { openSimulatedUser, type UserTurn } from '../validate/simulated-user.ts';
import type { Answerer, Utterance } from './conversation.ts';
import type { TrialModels } from './models.ts';
import type { TrialSpec } from './spec.ts';

/**
 * Answers the harness as the case's simulated user, up to that user's limit of messages. Undefined if the
 * case has no simulated user.
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
      return { ends: `after ${turns} messages, the limit for this user` };
    }
    const turn = await answered(played.next, said, signal, models.session.overBudget);
    return 'says' in turn ? turn : { ends: `${turn.ends}: ${turn.why}` };
  };
}

type Next = (said: readonly Utterance[], signal: AbortSignal) => Promise<UserTurn>;
type Ending = { ends: string; why: string };

/**
 * Returns the user's answer. If what the harness did prevents an answer, it returns an end of the
 * conversation: the harness's words may be too long for the user's model, or may talk it out of answering. A
 * control decides who caused the failure: the same model is asked with an empty message from the harness. If
 * the control fails too, the user's model is the cause, and the error is thrown. A passing fault of the model
 * does not occur twice with a successful control in between.
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
    // Agent and user share one budget, and the harness has used it up.
    if (overBudget.aborted) return { ends: 'unanswered', why: messageOf(error) };
    const works = await next([...said.slice(0, 1), { from: 'harness', text: '' }], signal).then(
      () => true,
      () => false,
    );
    signal.throwIfAborted();
    // The control itself may exceed the budget.
    if (!works && !overBudget.aborted) throw error;
  }
  try {
    return await next(said, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof OffsiteError)) throw error;
    return {
      ends: 'unanswered',
      why: `the user’s model could not answer what the harness said: ${error.message}`,
    };
  }
}
