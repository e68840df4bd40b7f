import { expect, test } from 'vitest';
import type { UpstreamRequest } from '../../src/gateway/answer.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { place, question, sessionRequest } from './gateway-fixture.ts';
import { sandboxOf } from './sandbox.ts';
import { chatAnswer, json } from './test-upstream.ts';

const hello = { messages: [{ from: 'user', text: 'hello' }] } as const;
const { signal } = new AbortController();
const scriptedModel = ModelConfig.parse({ scripted: 'turns.yaml' });

test('an answer that this process asks for is metered and recorded like any other', async () => {
  await using at = await place({ session: { models: { judge: ['big'] } } }, json(200, chatAnswer));
  const answer = await at.session.chat('judge', hello, signal);
  expect(answer).toMatchObject({ text: 'hi', usage: { inputTokens: 100, outputTokens: 20 } });
  expect(JSON.parse(`${at.upstream.received[0]?.body}`)).toMatchObject({ model: 'big-1' });
  expect(await at.session.account()).toMatchObject({
    usage: [{ role: 'judge', model: 'big', requests: 1, usage: { totalTokens: 120, cacheReadTokens: 40 } }],
    modelMs: 0,
    failure: undefined,
  });
});

test('judges can still be asked when the sandbox can not', async () => {
  await using at = await place(
    { session: { models: { agent: ['big'], judge: ['big'] } } },
    json(200, chatAnswer),
  );
  at.session.close('the harness has ended');
  expect(await at.sandbox.ask({ headers: at.agent, body: question })).toMatchObject({ status: 400 });
  expect(await at.session.chat('judge', hello, signal)).toMatchObject({ text: 'hi' });
});

test('a role asks its own models only, and no more than the budget', async () => {
  await using at = await place({ session: { budget: { requests: 1 } } }, json(200, chatAnswer));
  await expect(at.session.chat('judge', hello, signal)).rejects.toMatchObject({ code: 'MODEL_NOT_FOUND' });
  await expect(at.session.chat('agent', { ...hello, model: 'other' }, signal)).rejects.toMatchObject({
    code: 'MODEL_NOT_FOUND',
  });
  await at.session.chat('agent', { ...hello, model: 'large' }, signal);
  await expect(at.session.chat('agent', hello, signal)).rejects.toMatchObject({ code: 'BUDGET_EXCEEDED' });
  expect(at.session.overBudget.aborted).toBe(true);
});

test('a chat that is aborted ends at the model', async () => {
  const arrived = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  await using at = await place({}, (response) => {
    response.once('close', closed.resolve);
    arrived.resolve();
  });
  const stop = new AbortController();
  const asked = at.session.chat('agent', hello, stop.signal);
  await arrived.promise;
  stop.abort(new Error('no more'));
  await expect(asked).rejects.toThrow('no more');
  await closed.promise;
  expect((await at.session.account()).exchanges).toMatchObject([{ failure: 'no more', status: undefined }]);
});

test('a scripted model answers in every wire, each session from its own beginning', async () => {
  const made: UpstreamRequest[][] = [];
  const scripted = (file: string) => {
    expect(file).toBe('turns.yaml');
    const seen: UpstreamRequest[] = [];
    made.push(seen);
    return {
      async send(request: UpstreamRequest) {
        seen.push(request);
        const body = JSON.stringify({ ...chatAnswer, turn: seen.length });
        return {
          status: 200,
          headers: { 'content-type': 'application/json' },
          body: (async function* () {
            yield Buffer.from(body);
          })(),
        };
      },
    };
  };
  await using at = await place({ gateway: { models: { big: scriptedModel }, scripted } });
  await using other = at.gateway.open(sessionRequest());
  await using sandbox = sandboxOf(other);
  const theirs = { authorization: `Bearer ${other.token('agent')}` };
  for (const path of ['/v1/chat/completions', '/v1/responses', '/v1/messages']) {
    expect(await at.sandbox.ask({ path, headers: at.agent, body: question })).toMatchObject({ status: 200 });
  }
  const first = await sandbox.ask({ headers: theirs, body: question });
  expect(first.body.turn).toBe(1);
  expect(made.map(({ length }) => length)).toEqual([3, 1]);
  expect(made[0]?.map(({ wire, path }) => `${wire} ${path}`)).toEqual([
    'openai-chat /chat/completions',
    'openai-responses /responses',
    'anthropic-messages /messages',
  ]);
});
