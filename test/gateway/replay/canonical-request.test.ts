import { expect, test } from 'vitest';
import { canonicalRequest, withoutVolatile } from '../../../src/gateway/replay/canonical-request.ts';
import { keysOf } from '../../../src/gateway/replay/cassette.ts';
import { Losses } from '../../../src/gateway/translation/losses.ts';
import type { NeutralRequest } from '../../../src/gateway/translation/neutral-request.ts';
import { wireTable } from '../../../src/gateway/wires/wire-table.ts';
import { type Wire, wires } from '../../../src/suite/model-config.ts';
import { asks, bash, called, returned, said } from './recorded.ts';

/** The request as it is after a client of the wire has sent it. */
function over(wire: Wire, request: NeutralRequest) {
  const { translation } = wireTable[wire];
  const losses = new Losses('lenient', 'big');
  const body = translation.writeRequest(request, losses, { model: 'big', maxOutputTokens: undefined });
  return canonicalRequest(translation.readRequest(body, losses));
}

const conversation = asks(
  { from: 'system', text: 'You are an agent.' },
  said('Count the words.'),
  {
    from: 'model',
    parts: [
      { type: 'text', text: 'I look.' },
      { type: 'call', id: 'call_1', name: 'bash', arguments: '{"command":"ls"}' },
      { type: 'call', id: 'call_2', name: 'bash', arguments: '{"command":"wc text"}' },
    ],
  },
  returned('call_1', 'text'),
  returned('call_2', '9'),
);

test.each(wires)('the same conversation is the same request over %s', (wire) => {
  expect(over(wire, conversation)).toEqual(canonicalRequest(conversation));
});

test('ids of calls, marks for caches, metadata, thoughts, limits and the order of tools do not matter', () => {
  const { readRequest } = wireTable['anthropic-messages'].translation;
  const look = { name: 'look', description: 'Looks.', input_schema: { type: 'object' } };
  const shell = { name: 'bash', description: bash.description, input_schema: bash.parameters };
  const body = (id: string) => [
    { role: 'assistant', content: [{ type: 'tool_use', id, name: 'bash', input: { command: 'ls', b: 1 } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'text\n' }] },
  ];
  const plain = {
    max_tokens: 1,
    tools: [shell, look],
    messages: [{ role: 'user', content: 'Hi' }, ...body('a')],
  };
  const cached = { cache_control: { type: 'ephemeral' } };
  const [call, result] = body('toolu_77');
  const thought = { type: 'thinking', thinking: 'Hm.', signature: 'abc' };
  const input = { b: 1, command: 'ls' };
  const other = {
    max_tokens: 32_000,
    metadata: { user_id: 'session-5' },
    tools: [look, { ...shell, ...cached }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hi', ...cached }] },
      { ...call, content: [thought, { type: 'tool_use', id: 'toolu_77', name: 'bash', input }] },
      result,
    ],
  };
  const read = (document: object) =>
    canonicalRequest(readRequest({ ...document }, new Losses('lenient', 'big')));
  expect(read(other)).toEqual(read(plain));
});

test('results are in the order of their calls, whatever the order in which they were sent', () => {
  const [system, user, model, first, second] = conversation.messages;
  const swapped = [system, user, model, second, first].filter((one) => one !== undefined);
  expect(canonicalRequest({ ...conversation, messages: swapped })).toEqual(canonicalRequest(conversation));
});

test('what a harness adds within a tag is context, what the user said is conversation', () => {
  const reminder = '<system-reminder>\nToday is Monday.\n</system-reminder>';
  const { context, turns } = canonicalRequest(
    asks({
      from: 'user',
      parts: [
        { type: 'text', text: reminder },
        { type: 'text', text: 'Use <b>bold</b>' },
      ],
    }),
  );
  expect(context).toEqual([reminder]);
  expect(turns).toEqual([{ by: 'user', said: 'Use <b>bold</b>', media: [], results: [] }]);
});

test.each([
  ["Today's date is 2026-11-22.", "Today's date is 2027-01-03."],
  ["Today's date: Sun Nov 22 2026", "Today's date: Mon Jan 4 2027"],
  ["Today's date is Sunday, November 22, 2026.", "Today's date is Tuesday, May 4, 2027."],
  ['The current month is November 2026.', 'The current month is May 2027.'],
  ['Chunk ID: 50b9e2\nWall time: 0.0112 seconds', 'Chunk ID: 0d73b6\nWall time: 0.0000 seconds'],
  ['Process Group PGID: 41', 'Process Group PGID: 7042'],
  ['2026-11-22T20:38:42.123Z done in 12 ms', '2026-12-01T01:02:03Z done in 1.5 s'],
  ['# tests 3\n# duration_ms 507.3721', '# tests 3\n# duration_ms 1420.309118'],
  ['{"name":"a","duration":0.5}', '{"name":"a","duration":12}'],
  ['<testcase name="a" time="0.001">', '<testcase name="a" time="1.25">'],
  ['elapsed: 12', 'elapsed: 7'],
  ['/tmp/tmp.aB3xY/out', '/tmp/tmp.Q9zzz/out'],
  ['[main 3f2a1bc] Fix', '[main 99ab0d1] Fix'],
  ['4d9e1c1e-7f2c-4ed4-b6a1-0a4c9a7c4c11', '00000000-7f2c-4ed4-b6a1-0a4c9a7c4c12'],
  ['listening on 127.0.0.1:43121', 'listening on 127.0.0.1:8080'],
  ['-rw-r--r-- 1 root root 9 Nov 22 20:38 a', '-rw-r--r-- 1 root root 9 Dec  1 01:02 a'],
])('%j counts as equal to %j', (one, other) => {
  expect(withoutVolatile(one)).toBe(withoutVolatile(other));
});

test.each([
  ['9 words', '10 words'],
  ['Exit code 1', 'Exit code 0'],
  ['id: 5', 'id: 6'],
  ['/workspace/a.js', '/workspace/b.js'],
  ['-1 == 5', '1 == 5'],
  ['version 1.2.3', 'version 1.2.4'],
  ['one time 5', 'one time 6'],
  ['the time limit is 5', 'the time limit is 6'],
])('%j does not count as equal to %j', (one, other) => {
  expect(withoutVolatile(one)).not.toBe(withoutVolatile(other));
});

test('volatile shapes count in what a person asks an agent, not in results', () => {
  const of = (date: string, result: string) =>
    keysOf(
      canonicalRequest(asks(said(`Write ${date}.`), called('a', 'date'), returned('a', result))),
      'agent',
      'big',
    );
  expect(of('2026-01-01', '12:00:01').known).toBe(of('2026-01-01', '13:07:55').known);
  expect(of('2026-01-01', '12:00:01').exact).not.toBe(of('2026-01-01', '13:07:55').exact);
  expect(of('2026-01-01', '12:00:01').conversation).not.toBe(of('2026-01-02', '12:00:01').conversation);
});

test('a long text of digits and letters takes no more than linear time', () => {
  const started = performance.now();
  for (const piece of [
    'a1',
    '1',
    '/tmp/',
    '2026-11-22',
    'Nov ',
    '<a',
    '12:34:',
    'P',
    '0x',
    'time',
    'duration',
  ])
    withoutVolatile(piece.repeat(200_000 / piece.length));
  expect(performance.now() - started).toBeLessThan(5_000);
});
