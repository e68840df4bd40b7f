import { expect, test } from 'vitest';
import { type Cassette, recordedExchange } from '../../../src/gateway/replay/cassette.ts';
import type { ModelExchange } from '../../../src/record/model-account.ts';
import { type Wire, wires } from '../../../src/suite/model-config.ts';
import { type At, clients, type Heard, type Said } from '../translation/clients.ts';
import { replayPlace, scriptedPlace, type TranslatedPlace } from '../translation/translated-place.ts';
import { asks, cassette, recorded, returned, said, trial } from './recorded.ts';

const script = {
  turns: [{ text: 'I count.', run: ['wc -w text', 'ls'] }, { text: 'Nine words.' }],
  otherwise: 'Nothing more.',
};

/** Two turns of a conversation with a call of two tools. */
async function converse(at: At, wire: Wire, streamed: boolean, result = '9'): Promise<Heard[]> {
  const first: Said = { user: 'Count the words.' };
  const answer = await clients[wire].ask(at, [first], streamed);
  const more: Said[] = [first, { answer, results: [result, 'text'] }];
  return [answer, await clients[wire].ask(at, more, streamed)];
}

async function exchangesOf({ session, kept }: TranslatedPlace): Promise<Cassette> {
  const { exchanges } = await session.account();
  const all = exchanges.map((exchange, index) => {
    const one = recordedExchange(exchange as ModelExchange, index + 1, (sha256) => kept.get(sha256));
    if (typeof one === 'string') throw new Error(one);
    return one;
  });
  return cassette(trial({}, ...all));
}

/** Ids of calls are those of the recorded answer, or numbers where the wire has none. */
const meaning = (heard: readonly Heard[]) =>
  heard.map(({ text, calls }) => ({ text, calls: calls.map(({ id: _, ...call }) => call) }));

test.each(wires)(
  'what was recorded over %s answers the same conversation over each wire, streamed or not',
  async (wire) => {
    for (const streamed of [true, false]) {
      await using live = await scriptedPlace(wire, script, { record: 'full' });
      const was = await converse(live, wire, streamed);
      const all = await exchangesOf(live);
      for (const other of wires) {
        // Streamed as it was over this wire, and otherwise over the others.
        const isStream = (other === wire) === streamed;
        await using at = await replayPlace(all);
        const now = await converse(at, other, isStream);
        expect(meaning(now), `${other} ${isStream}`).toEqual(meaning(was));
        const { exchanges, usage } = await at.session.account();
        expect(exchanges.map(({ replayed }) => replayed?.how)).toEqual(['exact', 'exact']);
        expect(usage).toMatchObject([{ requests: 2, replayed: 2, usage: { costUsd: 0 } }]);
        expect(usage[0]?.usage.outputTokens).toBeGreaterThan(0);
        expect(at.session.replayMissed.aborted).toBe(false);
      }
    }
  },
  60_000,
);

test.each(wires)(
  'what was recorded from anthropic-messages translated to %s answers it again',
  async (wire) => {
    await using live = await scriptedPlace(wire, script, { record: 'full' });
    const was = await converse(live, 'anthropic-messages', true);
    await using at = await replayPlace(await exchangesOf(live));
    expect(meaning(await converse(at, 'anthropic-messages', true))).toEqual(meaning(was));
  },
);

test('a request that is not recorded gets an error that quotes nothing of the recording', async () => {
  await using live = await scriptedPlace('openai-chat', script, { record: 'full' });
  await converse(live, 'openai-chat', false, 'the-secret-result');
  const all = await exchangesOf(live);
  await using at = await replayPlace(all);
  const failed = await converse(at, 'openai-chat', false, 'another').catch((error: Error) => error);
  expect(String(failed)).toMatch(/400.*no recorded answer/);
  expect(String(failed)).not.toContain('secret');
  expect(at.session.replayMissed.reason).toMatchObject({
    code: 'REPLAY_MISS',
    message: expect.stringContaining(
      'request 2 (agent) has no recorded answer in a cassette: the nearest is request 2 of one · codex #0: ' +
        'turn 3 differs in the result of call 1: recorded "the-secret-result", now "another"',
    ),
  });
  const { exchanges } = await at.session.account();
  expect(exchanges[1]).toMatchObject({ status: 400, failure: expect.stringContaining('the-secret-result') });
});

test('recorded answers spend nothing of a budget, and need no prices', async () => {
  await using live = await scriptedPlace('openai-chat', script, { record: 'full' });
  await converse(live, 'openai-chat', false);
  await using at = await replayPlace(await exchangesOf(live), { budget: { tokens: 1, usd: 0.01 } });
  await converse(at, 'openai-chat', false);
  expect(at.session.overBudget.aborted).toBe(false);
});

test('a refusal of a model is replayed as one', async () => {
  const refusal = { turns: [{ trouble: { error: { status: 400, message: 'Too long.' } } }], otherwise: '' };
  await using live = await scriptedPlace('openai-chat', refusal, { record: 'full' });
  await expect(converse(live, 'openai-chat', false)).rejects.toThrow('Too long.');
  const all = await exchangesOf(live);
  for (const wire of wires) {
    await using at = await replayPlace(all);
    await expect(converse(at, wire, true), wire).rejects.toThrow('Too long.');
  }
});

test('a recorded answer that is not one of its wire is an error of the model, never an answer', async () => {
  const request = asks({ from: 'system', text: 'Be brief.' }, said('Count the words.'));
  const all = cassette(trial({}, recorded('garbage', request), recorded('{}', asks(returned('a', 'b')))));
  for (const wire of ['anthropic-messages', 'gemini'] as const) {
    await using at = await replayPlace(all);
    await expect(converse(at, wire, true), wire).rejects.toThrow();
    expect((await at.session.account()).exchanges[0]?.failure).toBeDefined();
  }
});

test('a model with the name of no recorded one is refused before anything is asked', async () => {
  const other = { model: 'another' };
  const all = cassette(
    trial({}, recorded('a', asks(said('a')), other), recorded('b', asks(said('b')), { model: 'more' })),
  );
  await expect(replayPlace(all)).rejects.toThrow('which recorded another, more');
});
