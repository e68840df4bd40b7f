import { afterAll, beforeAll, expect, test } from 'vitest';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { chatAnswer, json, type Step, type TestUpstream, testUpstream } from '../gateway/test-upstream.ts';
import { openTrialBench, type TrialBench, timeouts, validator } from './trial-bench.ts';

/** The ways in which the server of a judge's model gives no answer. */
const faults: Record<string, Step> = {
  reset: (response) => response.socket?.resetAndDestroy(),
  partial: (response) => {
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
      .write('{"choices"');
    response.socket?.end();
  },
  page: (response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html><title>Log in</title>'),
  empty: json(200, { choices: [] }),
  detail: json(200, { detail: 'No model is loaded.' }),
  endless: (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const write = () => {
      while (!response.destroyed && response.write(' '.repeat(65_536)));
      if (!response.destroyed) response.once('drain', write);
    };
    write();
  },
  refusal: json(400, { error: { message: 'not today' } }),
};

const judgment = '{"reason": "it is fine", "score": 1}';
const good = json(200, {
  ...chatAnswer,
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: judgment } }],
});

let bench: TrialBench;
const servers: TestUpstream[] = [];
const models: Record<string, ModelConfig> = {};
/** Serves a model that answers a question by its text. */
async function serve(name: string, answer: (asked: string, ...given: Parameters<Step>) => unknown) {
  const server = await testUpstream((response, received) =>
    answer(received.body.toString(), response, received),
  );
  servers.push(server);
  models[name] = ModelConfig.parse({ wire: 'openai-chat', baseUrl: server.url, model: 'judge' });
}

beforeAll(async () => {
  for (const [name, fault] of Object.entries(faults)) {
    await serve(`${name}-always`, (_, ...given) => fault(...given));
    await serve(`${name}-of-work`, (asked, ...given) =>
      asked.includes('poison') ? fault(...given) : good(...given),
    );
    let count = 0;
    await serve(`${name}-once`, (_, ...given) => (count++ === 0 ? fault(...given) : good(...given)));
  }
  await serve('mute', () => undefined);
  bench = await openTrialBench({ models });
});
afterAll(async () => {
  await bench?.[Symbol.asyncDispose]();
  for (const server of servers) await server[Symbol.asyncDispose]();
});

const judging =
  validator(`import { validate } from 'offsite/validator'; import { readFileSync } from 'node:fs';
validate('kind', ({ judge }) => judge({ rubric: 'Is it kind?', material: readFileSync('text', 'utf8'), threshold: 0.5 }));`);
const judged = (judge: string, limits = {}) =>
  bench.trial(
    'echo poison > text',
    { prepare: 'echo hello > text', validator: judging, judges: [judge] },
    limits,
  );

test.concurrent.each(Object.keys(faults))(
  'a judge that never answers makes a trial void, and no agent fails: %s',
  async (name) => {
    const result = await judged(`${name}-always`);
    expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'model', phase: 'validate' } });
  },
);

test.concurrent.each(Object.keys(faults))(
  'work that no judge can answer, while it answers without it, has failed: %s',
  async (name) => {
    const result = await judged(`${name}-of-work`);
    expect(result).toMatchObject({
      verdict: 'failed',
      cause: {
        kind: 'agent',
        message: expect.stringContaining(
          '; the model answers without the work, and an untouched workspace can',
        ),
      },
    });
  },
);

test.concurrent.each(Object.keys(faults))('a judge that fails once is asked again: %s', async (name) => {
  const result = await judged(`${name}-once`);
  expect(result.cause).toBeUndefined();
  expect(result.verdict).toBe('passed');
});

test('the deadline of the validator covers the wait for a judge', async () => {
  const began = performance.now();
  const result = await judged('mute', { timeouts: { ...timeouts, validator: 3_000 } });
  expect(result).toMatchObject({
    verdict: 'void',
    cause: { kind: 'model', message: expect.stringContaining("no answer within the validator's 3 s") },
  });
  expect(performance.now() - began).toBeLessThan(60_000);
});
