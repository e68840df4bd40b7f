import { describe, expect, test } from 'vitest';
import { Losses } from '../../../src/gateway/translation/losses.ts';
import type { ModelPart } from '../../../src/gateway/translation/neutral-request.ts';
import { wireTable } from '../../../src/gateway/wires/wire-table.ts';
import type { Wire } from '../../../src/suite/model-config.ts';
import { heard, pairs } from './hostile-model.ts';
import { requests } from './requests.ts';

/** An answer in one piece of a model of this wire. */
function answerOf(wire: Wire, parts: ModelPart[]): string {
  const answer = { id: 'a1', model: 'big-1', parts, stop: 'tools' as const, usage: { input: 7, output: 5 } };
  const asked = { request: requests.neutral, at: 0, losses: new Losses('lenient', 'big') };
  return JSON.stringify(wireTable[wire].translation.writeAnswer(answer, asked));
}

const call = (id: string, given = '{"command":"ls"}'): ModelPart => ({
  type: 'call',
  id,
  name: 'bash',
  arguments: given,
});

/** What only a whole answer of a model has, and no error. */
const success: Record<Wire, RegExp> = {
  'openai-chat': /"finish_reason"/,
  'openai-responses': /"status":"(completed|incomplete)"/,
  'anthropic-messages': /"stop_reason"/,
  gemini: /"finishReason"/,
};

const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

const broken: [string, (wire: Wire) => string | Buffer][] = [
  ['is cut', (wire) => answerOf(wire, [call('c1')]).slice(0, -20)],
  ['is empty', () => ''],
  ['is not JSON', () => 'I am a teapot.'],
  ['is another document', () => '[1, 2]'],
  ['is null', () => 'null'],
  ['has 100,000 levels', (wire) => answerOf(wire, [call('c1')]).replace('{', `{"x":${nested(100_000)},`)],
  ['has 2,000 calls', (wire) => answerOf(wire, Array(2_000).fill(call('c1')))],
  [
    'has an argument of 17 MB',
    (wire) => answerOf(wire, [call('c1', '{"command":"LONG"}')]).replace('LONG', 'x'.repeat(17e6)),
  ],
  ['has a call without a name', (wire) => answerOf(wire, [call('c1')]).replace('"bash"', '""')],
];

describe.each(pairs)('$model to $client', ({ model, client }) => {
  test.each(broken)('an answer in one piece that %s is an error', async (_, make) => {
    const body = make(model);
    const got = await heard(
      client,
      model,
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(body);
      },
      { streamed: false },
    );
    expect(got).toMatchObject({ status: 502, isWhole: true, failure: expect.any(String) });
    expect(JSON.parse(got.text)).toHaveProperty('error');
    expect(got.text).not.toMatch(success[client]);
  });

  test('calls with the same id become two calls', async () => {
    const body = answerOf(model, [call('same'), call('same', '{"command":"pwd"}')]);
    const got = await heard(
      client,
      model,
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(body);
      },
      { streamed: false },
    );
    expect(got).toMatchObject({ status: 200, failure: undefined });
    expect(got.text).toContain('"same"');
    expect(got.text).toContain('"call_0"');
  });

  test('a connection that is cut in an answer in one piece is an error', async () => {
    const body = answerOf(model, [call('c1')]);
    const got = await heard(
      client,
      model,
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
        response.write(body.slice(0, 40));
        setTimeout(() => response.destroy(), 20);
      },
      { streamed: false },
    );
    expect(got).toMatchObject({ status: 502, failure: expect.any(String) });
  });
});
