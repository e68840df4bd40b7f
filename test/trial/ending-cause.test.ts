import { expect, test } from 'vitest';
import type { HarnessEnding } from '../../src/record/harness.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import type { TrialSandbox } from '../../src/trial/phase.ts';
import { endingCause } from '../../src/trial/run/ending-cause.ts';
import { place, question } from '../gateway/gateway-fixture.ts';
import { chatAnswer, json, type Step } from '../gateway/test-upstream.ts';
import { fixtureCli } from './fixture-cli.ts';
import { specOf } from './trial-bench.ts';

const page: Step = (response) =>
  response.writeHead(200, { 'content-type': 'text/html' }).end('<html><title>Log in</title></html>');

/** The cause of a trial whose harness asks once for each step, and then ends. */
async function causeAfter(ending: HarnessEnding, ...steps: Step[]) {
  await using at = await place({}, ...steps);
  // A broken answer breaks off for the harness too.
  for (const _ of steps) await at.sandbox.ask({ headers: at.agent, body: question }).catch(() => undefined);
  const spec = specOf('', { harness: 'fixture-cli', modelConfig: ModelConfig.parse({ scripted: 'none' }) });
  const sandbox = { models: { session: at.session } } as unknown as TrialSandbox;
  return endingCause(fixtureCli, { ending, lastOutput: undefined }, spec, sandbox);
}

const guess = 'the answer was malformed. Check the base URL';

test("the server's own words come before what the CLI makes of them", async () => {
  const refusal = json(422, { detail: [{ loc: ['body', 'tools'], msg: 'at most 5 items' }] });
  expect(await causeAfter({ ended: 'model-failed', message: guess }, refusal)).toEqual({
    kind: 'model',
    phase: 'harness',
    message: `big: answered 422: tools: at most 5 items\nThe harness says: ${guess}`,
  });
});

test('a lost connection is told once, with what its error says to do', async () => {
  const reset: Step = (response) => response.socket?.resetAndDestroy();
  const cause = await causeAfter({ ended: 'model-failed', message: 'read ECONNRESET' }, reset);
  expect(cause?.message).toMatch(
    /^big: the connection to \S+ failed: .*ECONNRESET\. Check its baseUrl and the network\.$/,
  );
});

test('a body that a CLI quotes is told as its words', async () => {
  const refusal: Step = (response) => response.writeHead(400).end('the queue is full');
  const message = '{"error":{"message":"the queue is full","type":"invalid_request_error","code":null}}';
  expect(await causeAfter({ ended: 'model-failed', message }, refusal)).toMatchObject({
    message: 'big: answered 400: the queue is full',
  });
});

test.each(['model-failed', 'runner-broke'] as const)(
  'a page in place of an answer is the failure of the model, whatever the CLI does: %s',
  async (ended) => {
    const cause = await causeAfter({ ended, message: guess }, page);
    expect(cause).toMatchObject({ kind: 'model', message: expect.stringContaining('a web page: Log in') });
    expect(cause?.message.startsWith('big: ')).toBe(true);
  },
);

const tooLong = json(400, { error: { message: "This model's maximum context length is 4096 tokens." } });

test('a context that is too small for the first request is said as that, and no agent is blamed', async () => {
  const message = 'context window exceeded';
  expect(await causeAfter({ ended: 'agent-failed', message }, tooLong)).toMatchObject({
    kind: 'model',
    message: expect.stringMatching(/too small for the first request.*4096 tokens/),
  });
  expect(await causeAfter({ ended: 'agent-failed', message }, json(200, chatAnswer), tooLong)).toMatchObject({
    kind: 'agent',
  });
});

// Without the end of the connection, the server would keep it open for some seconds.
const halfAnAnswer: Step = (response) =>
  response.writeHead(200, { 'content-length': '500' }).write('{"choices"', () => response.socket?.end());

const detail = json(200, { detail: 'No model is loaded.' });

test.each<[string, Step]>([
  ['a page', page],
  ['an error with the status 200', detail],
  ['an error', json(503, { error: { message: 'busy' } })],
  ['no choice', json(200, { choices: [] })],
  ['half an answer', halfAnAnswer],
  ['a reset', (response) => response.socket?.resetAndDestroy()],
])(
  'no agent is blamed where its model answered nothing but %s, however the harness ends',
  async (_, step) => {
    for (const ending of [
      { ended: 'agent-failed', message: 'it gave up' },
      { ended: 'runner-broke', message: 'it crashed' },
      { ended: 'exited', exitCode: 0 },
      { ended: 'timed-out', afterMs: 1 },
    ] as const)
      expect(await causeAfter(ending, step), ending.ended).toMatchObject({ kind: 'model' });
  },
);

test('a model whose last answer was none is to blame if the harness crashes over it', async () => {
  const crash = { ended: 'runner-broke', message: 'it crashed' } as const;
  const cause = await causeAfter(crash, json(200, chatAnswer), detail);
  expect(cause).toMatchObject({ kind: 'model', message: expect.stringContaining('No model is loaded.') });
});

test('a wrong key is told with what to change; a failure that passes is not', async () => {
  const gaveUp = { ended: 'model-failed', message: guess } as const;
  const wrong = await causeAfter(gaveUp, json(401, { error: { message: 'unknown key' } }));
  expect(wrong?.message).toMatch(/unknown key\nThe harness says: .*\nCheck the key in the variable/s);
  const busy = await causeAfter(gaveUp, json(503, { error: { message: 'busy' } }));
  expect(busy?.message).not.toContain('try again later');
});

test("what a CLI repeats of the server's words is told once", async () => {
  const message = 'the model says: busy today';
  const cause = await causeAfter(
    { ended: 'model-failed', message },
    json(503, { error: { message: 'busy today' } }),
  );
  expect(cause?.message).toBe(message);
});

test('the exit code of a harness is no news where its model failed', async () => {
  const cause = await causeAfter({ ended: 'exited', exitCode: 7 }, json(503, { error: { message: 'busy' } }));
  expect(cause?.message).toBe('big: answered 503: busy');
});

test('a first request that is too long is known by the words of the server or of the CLI', async () => {
  const short = /too small for the first request/;
  const byServer = await causeAfter({ ended: 'agent-failed', message: 'it gave up' }, tooLong);
  expect(byServer).toMatchObject({ kind: 'model', message: expect.stringMatching(short) });
  const other = json(400, { error: { message: 'no' } });
  const byCli = await causeAfter({ ended: 'agent-failed', message: 'context window exceeded' }, other);
  expect(byCli).toMatchObject({ kind: 'model', message: expect.stringMatching(short) });
});
