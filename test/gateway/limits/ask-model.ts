import type { Gateway } from '../../../src/gateway/gateway.ts';
import { sandboxOf } from '../sandbox.ts';

/** What became of the trials: a trial is lost if one of its requests is answered with an error. */
export interface Asked {
  trials: number;
  lost: number;
  answers: number;
  /** Attempts that the model refused; the trial does not see them. */
  refusals: number;
}

/** Runs trials at the model `limited`, `atATime` at a time, each of some requests, until `until` aborts. */
export async function askModel(
  gateway: Gateway,
  { atATime, requests, until }: { atATime: number; requests: number; until: AbortSignal },
): Promise<Asked> {
  const asked: Asked = { trials: 0, lost: 0, answers: 0, refusals: 0 };
  let number = 0;
  const runTrials = async () => {
    while (!until.aborted) {
      const trial = `trial-${number++}`;
      await using session = gateway.open({
        trial,
        models: { agent: ['limited'] },
        budget: {},
        hosts: [],
        keep: async () => '',
      });
      await using sandbox = sandboxOf(session);
      const headers = { authorization: `Bearer ${session.token('agent')}` };
      const body = { model: 'limited', stream: true, messages: [{ role: 'user', content: 'hello' }] };
      let isLost = false;
      for (let request = 0; request < requests && !until.aborted; request++) {
        const { status, bytes } = await sandbox.ask({ headers, body });
        if (status === 200 && bytes.includes('[DONE]')) asked.answers += 1;
        else isLost = true;
      }
      const { exchanges } = await session.account();
      asked.refusals += exchanges.reduce((sum, { failedTries }) => sum + failedTries.length, 0);
      asked.trials += 1;
      if (isLost) asked.lost += 1;
    }
  };
  await Promise.all(Array.from({ length: atATime }, runTrials));
  return asked;
}
