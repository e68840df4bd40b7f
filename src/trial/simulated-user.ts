import { openSimulatedUser } from '../validate/simulated-user.ts';
import type { Answerer } from './conversation.ts';
import type { TrialModels } from './models.ts';
import type { TrialSpec } from './spec.ts';

/** Who answers the harness in a trial: the case's simulated user, up to their limit of messages. Undefined where the case has none. */
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
    const turn = await played.next(said, signal);
    return 'says' in turn ? turn : { ends: `${turn.ends}: ${turn.why}` };
  };
}
