import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openFleetPlace } from './fleet-place.ts';

/** A model that takes its time, and counts the requests that it has at a time. */
async function countingModel(answerMs: number) {
  const counts = { now: 0, most: 0, all: 0 };
  const server = createServer(async (request, response) => {
    counts.all++;
    counts.most = Math.max(counts.most, ++counts.now);
    request.resume();
    await sleep(answerMs);
    counts.now--;
    const message = { role: 'assistant', content: 'yes' };
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        model: 'narrow-1',
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
      }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    counts,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const ask =
  'curl -sS -H "authorization: Bearer $OPENAI_API_KEY" -H "content-type: application/json" ' +
  `-d '{"model":"narrow","messages":[{"role":"user","content":"hi"}]}' "$OPENAI_BASE_URL/chat/completions"`;

test('a model that takes three requests at a time gets no fourth from four workers', async () => {
  await using model = await countingModel(500);
  await using fleet = await openFleetPlace();
  const file = fleet.suite({
    cases: ['a', 'b', 'c', 'd'].map((id) => ({ id, verify: 'cat done.txt' })),
    trials: 2,
    model: 'narrow',
    // Each trial alone asks more at a time than the model takes.
    run: `for round in 1 2; do for n in 1 2 3 4; do ${ask} > answer-$n.json & done; wait; done; echo done > done.txt`,
    config: {
      models: {
        narrow: { wire: 'openai-chat', baseUrl: model.baseUrl, apiKeyEnv: 'NARROW_KEY', maxParallel: 3 },
      },
    },
  });
  const env = { NARROW_KEY: 'sk-narrow-0123456789abcdef' };
  const names = ['one', 'two', 'three', 'four'];
  const workers = await Promise.all(names.map((name) => fleet.worker(name, ['-c', '2'], { env })));
  const { exitCode, stdout, stderr } = await fleet.command(['run', file], env).ended;
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/^all +8 +0 +0/m);
  expect(model.counts).toEqual({ now: 0, most: 3, all: 64 });
  for (const worker of workers) worker.kill('SIGTERM');
  await Promise.all(workers.map(({ ended }) => ended));
}, 400_000);
