import { expect, test } from 'vitest';
import { place, question } from './gateway-fixture.ts';
import type { Step } from './test-upstream.ts';

const says =
  (status: number, type: string | undefined, body: string): Step =>
  (response) =>
    response.writeHead(status, type === undefined ? {} : { 'content-type': type }).end(body);

const page = '<!doctype html><html><head><title>Company login</title></head><body>Sign in</body></html>';

const refusals: [string, Step, string][] = [
  [
    'a detail',
    says(422, 'application/json', '{"detail":[{"loc":["body","tools"],"msg":"too many"}]}'),
    'tools: too many',
  ],
  ['plain text', says(400, 'text/plain', 'CUDA out of memory'), 'CUDA out of memory'],
  ['no type', says(404, undefined, 'no such path'), 'no such path'],
  ['an object', says(400, 'application/json', '{"object":"error","message":"bad template"}'), 'bad template'],
  ['a page', says(403, 'text/html', page), 'a web page: Company login'],
];

test.for(refusals)(
  'the words of a refusal reach a translated client, and the record on any wire: %s',
  async ([, step, words]) => {
    await using at = await place({}, step);
    const body = { ...question, max_tokens: 100 };
    const answer = await at.sandbox.ask({ path: '/v1/messages', headers: at.agent, body });
    expect(answer.body.error.message).toBe(words);
    const { failure, agent, exchanges } = await at.session.account();
    expect(failure ?? agent.lastFailure).toContain(words);
    expect(agent).toMatchObject({ acted: false, lastFailure: expect.stringContaining(words) });
    expect(exchanges[0]?.failure).toContain(words);
    // On the same wire the client gets the bytes.
    await using same = await place({}, step);
    await same.sandbox.ask({ headers: same.agent, body: question });
    expect((await same.session.account()).agent.lastFailure).toContain(words);
  },
);

test.for<[string, Step, string]>([
  ['a page', says(200, 'text/html; charset=utf-8', page), 'a web page: Company login'],
  ['a page that calls itself JSON', says(200, 'application/json', page), 'a web page: Company login'],
  ['plain text', says(200, 'text/plain', 'model is loading'), 'model is loading'],
  ['a document', says(200, 'application/json', '{"detail":"quota"}'), 'quota'],
  ['another document', says(200, 'application/json', '{"success":false,"msg":"quota"}'), 'quota'],
  ['an error', says(200, 'application/json', '{"error":{"message":"quota"}}'), 'quota'],
  ['nothing', says(200, undefined, ''), 'nothing'],
])('an answer of 200 that is none of a model is its failure: %s', async ([, step, words]) => {
  for (const [path, stream] of [
    ['/v1/chat/completions', false],
    ['/v1/messages', false],
    ['/v1/messages', true],
  ] as const) {
    await using at = await place({}, step);
    const body = { ...question, max_tokens: 100, stream };
    const answer = await at.sandbox.ask({ path, headers: at.agent, body });
    expect(answer.status).toBe(path === '/v1/messages' ? 502 : 200);
    if (path === '/v1/messages') expect(answer.body.error.message).toContain(words);
    const { agent } = await at.session.account();
    expect(agent).toMatchObject({ acted: false, modelFailure: expect.stringContaining(words) });
  }
});

test('an answer of a model without a type is read as what it is', async () => {
  const chunk = { model: 'big-1', choices: [{ delta: { content: 'hi' }, finish_reason: 'stop' }] };
  const usage = { choices: [], usage: { prompt_tokens: 7, completion_tokens: 2 } };
  const events = `\n\ndata: ${JSON.stringify(chunk)}\n\ndata: ${JSON.stringify(usage)}\n\ndata: [DONE]\n\n`;
  await using at = await place({}, says(200, 'text/plain', events));
  await at.sandbox.ask({ headers: at.agent, body: { ...question, stream: true } });
  const { agent, usage: used } = await at.session.account();
  expect(agent).toEqual({ acted: true, modelFailure: undefined });
  expect(used).toMatchObject([{ usage: { inputTokens: 7, outputTokens: 2 } }]);
});
