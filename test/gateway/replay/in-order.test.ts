import { expect, test } from 'vitest';
import {
  type Cassette,
  type RecordedExchange,
  recordedExchange,
} from '../../../src/gateway/replay/cassette.ts';
import { turnsInOrder } from '../../../src/gateway/replay/turns-in-order.ts';
import type { NeutralTool } from '../../../src/gateway/translation/neutral-request.ts';
import type { ModelExchange } from '../../../src/record/model-account.ts';
import { type Wire, wires } from '../../../src/suite/model-config.ts';
import { type At, clients, type Heard, type Said } from '../translation/clients.ts';
import { scriptedPlace, type TranslatedPlace } from '../translation/translated-place.ts';
import { asks, cassette, recorded, said, trial } from './recorded.ts';

const script = {
  turns: [
    { text: 'I count.', run: ['wc -w text', "echo 'a b'"] },
    { run: 'cat text' },
    { text: 'Nine words.' },
  ],
  otherwise: 'Nothing more.',
};
const live = { turns: [{ text: 'Alive.' }], otherwise: 'A title' };

/** The first answers of a conversation in which all results are this one. */
async function converse(at: At, wire: Wire, streamed: boolean, count: number, result = '9') {
  const conversation: Said[] = [{ user: `Count the words until you have ${result}.` }];
  const heard: Heard[] = [];
  for (let each = 0; each < count; each += 1) {
    const answer = await clients[wire].ask(at, conversation, streamed);
    heard.push(answer);
    conversation.push({ answer, results: answer.calls.map(() => result) });
  }
  return heard;
}

async function recordedOver(wire: Wire): Promise<Cassette> {
  await using at = await scriptedPlace(wire, script, { record: 'full' });
  await converse(at, wire, true, 2);
  const { exchanges } = await at.session.account();
  const all = exchanges.map((exchange, index) => {
    const one = recordedExchange(exchange as ModelExchange, index + 1, (sha256) => at.kept.get(sha256));
    if (typeof one === 'string') throw new Error(one);
    return one;
  });
  return cassette(trial({}, ...all));
}

function forked(all: Cassette): Promise<TranslatedPlace> {
  const replay = { cassette: all, live: 'at-end' as const, of: 'any' as const, inOrder: true };
  return scriptedPlace('openai-chat', live, { record: 'full' }, { replay });
}

test.each(wires)(
  'what was recorded over %s is given in its order to a harness of any wire, and then the model answers',
  async (wire) => {
    const all = await recordedOver(wire);
    for (const other of wires) {
      for (const streamed of [true, false]) {
        await using at = await forked(all);
        const heard = await converse(at, other, streamed, 3, 'something else');
        const commands = heard.map(({ calls }) => calls.map((call) => call.arguments));
        expect(heard.map(({ text }) => text)).toEqual(['I count.', '', 'Alive.']);
        expect(commands).toEqual([
          [{ command: 'wc -w text' }, { command: "echo 'a b'" }],
          [{ command: 'cat text' }],
          [],
        ]);
        const { exchanges } = await at.session.account();
        expect(exchanges.map(({ replayed }) => [replayed?.how, replayed?.number])).toEqual([
          ['order', 1],
          ['order', 2],
          [undefined, undefined],
        ]);
      }
    }
  },
  60_000,
);

/** A request of a harness whose shell tool takes `cmd` and an amount. */
async function ask({ origin, token }: At, messages: object[], tools: object[] = [execTool]) {
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'big', messages, ...(tools.length > 0 && { tools }) }),
  });
  const body = JSON.parse(await response.text());
  return { status: response.status, message: body.choices?.[0].message };
}

const execTool = functionTool(
  'exec_command',
  { cmd: { type: 'string' }, wait: { type: 'integer', minimum: 5 } },
  ['cmd', 'wait'],
);

function functionTool(name: string, properties: object, required: string[] = []) {
  return { type: 'function', function: { name, parameters: { type: 'object', properties, required } } };
}

test('commands become calls of the shell tool that a request offers, titles use no answer up, a retry gets its own', async () => {
  await using at = await forked(await recordedOver('anthropic-messages'));
  const user = { role: 'user', content: 'Do it.' };
  expect((await ask(at, [user], [])).message.content).toBe('Alive.');
  const first = (await ask(at, [user])).message;
  expect(first.content).toBe('I count.');
  expect(first.tool_calls[1].function.name).toBe('exec_command');
  expect(JSON.parse(first.tool_calls[1].function.arguments)).toEqual({ cmd: "echo 'a b'", wait: 5 });
  expect((await ask(at, [user])).message).toEqual(first);
  const { exchanges } = await at.session.account();
  expect(exchanges.map(({ replayed }) => replayed?.again)).toEqual([undefined, undefined, true]);
});

test('a harness that shortens its conversation does not get the recorded answers again', async () => {
  await using at = await forked(await recordedOver('openai-chat'));
  await converse(at, 'openai-chat', false, 3);
  expect((await ask(at, [{ role: 'user', content: 'In short: all is done.' }])).message.content).toBe(
    'Alive.',
  );
});

test('a harness without a shell is a miss, which names its tools to the person alone', async () => {
  await using at = await forked(await recordedOver('gemini'));
  const editor = functionTool('editor', { command: { enum: ['view', 'create'] } });
  expect(await ask(at, [{ role: 'user', content: 'Do it.' }], [editor])).toMatchObject({ status: 400 });
  expect(at.session.replayMissed.reason).toMatchObject({
    message: expect.stringContaining(
      'request 1 (agent) offers no tool that looks like a shell for the commands of request 1 ' +
        'of one · codex #0, only editor',
    ),
    hint: expect.stringContaining('another harness'),
  });
});

test('messages of a hostile agent take no time that grows faster than they do', async () => {
  await using at = await forked(await recordedOver('openai-chat'));
  const many = Array.from({ length: 40_000 }, () => ({ role: 'assistant', content: 'x'.repeat(100) }));
  const { message } = await ask(at, [
    { role: 'user', content: 'Do it.' },
    ...many,
    { role: 'user', content: 'On.' },
  ]);
  expect(message.content).toBe('I count.');
}, 20_000);

type Part = { thinking: string } | { text: string } | { name: string; input: object };

/** An exchange over anthropic-messages, whose answer has these parts. */
function answered(tool: Partial<NeutralTool>, ...parts: Part[]): RecordedExchange {
  const content = parts.map((part, index) => ({
    type: 'text' in part ? 'text' : 'thinking' in part ? 'thinking' : 'tool_use',
    id: `toolu_${index}`,
    ...part,
  }));
  const body = JSON.stringify({ type: 'message', model: 'big', content, stop_reason: 'tool_use', usage: {} });
  const shell = { name: 'Bash', parameters: { type: 'object', properties: { command: { type: 'string' } } } };
  const tools = [
    { name: 'patch', parameters: {} },
    { ...shell, ...tool },
  ];
  return recorded(
    '',
    { ...asks(said('Do it.')), tools },
    {
      wire: 'anthropic-messages',
      answer: () => ({ wire: 'anthropic-messages', status: 200, body: Buffer.from(body) }),
    },
  );
}

const withParameters = (...names: string[]) => ({
  parameters: {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'array' }])),
  },
});

test.each<[string, RecordedExchange, object]>([
  [
    'text and commands, without reasoning',
    answered(
      {},
      { thinking: 'Hm.' },
      { text: 'So.' },
      { name: 'Bash', input: { command: 'ls', timeout: 9 } },
    ),
    { text: 'So.', run: ['ls'] },
  ],
  [
    'a list of words',
    answered(withParameters('cmd'), { name: 'Bash', input: { cmd: ['grep', "it's", 'a.txt'] } }),
    { run: ["grep 'it'\\''s' a.txt"] },
  ],
  [
    'the script of a shell',
    answered({}, { name: 'Bash', input: { command: ['bash', '-lc', 'a; b'], workdir: '/my work' } }),
    { run: ["cd '/my work' && a; b"] },
  ],
  [
    'a list of commands',
    answered(withParameters('commands'), { name: 'Bash', input: { commands: ['one', 'two'] } }),
    { run: ['one', 'two'] },
  ],
])('%s: mapped', (_, exchange, turn) => {
  const { turns, obstacle } = turnsInOrder([exchange]);
  expect(obstacle).toBeUndefined();
  expect(turns).toMatchObject([{ turn }]);
});

test.each<[string, RecordedExchange, string]>([
  ['another tool', answered({}, { name: 'patch', input: { command: 'ls' } }), 'it calls patch'],
  [
    'a tool of a server',
    answered({}, { name: 'mcp__x__run', input: { command: 'ls' } }),
    'calls mcp__x__run',
  ],
  [
    'a command in the background',
    answered({}, { name: 'Bash', input: { command: 'ls', run_in_background: true } }),
    'calls Bash',
  ],
  [
    'an editor with a choice of commands',
    answered(
      { name: 'editor', parameters: { properties: { command: { enum: ['view'] } } } },
      { name: 'editor', input: { command: 'view' } },
    ),
    'calls editor',
  ],
])('%s: refused', (_, exchange, what) => {
  const before = answered({}, { name: 'Bash', input: { command: 'ls' } });
  const { turns, obstacle } = turnsInOrder([before, { ...exchange, number: 2 }]);
  expect(turns).toHaveLength(1);
  expect(obstacle).toEqual({ number: 2, what: expect.stringContaining(what) });
});

test('a free-form call of codex is refused by the name of its item', () => {
  const item = { type: 'custom_tool_call', call_id: 'c', name: 'apply_patch', input: '*** Begin Patch' };
  const body = JSON.stringify({ status: 'completed', output: [item], usage: {} });
  const answer = () => ({ wire: 'openai-responses' as const, status: 200, body: Buffer.from(body) });
  const exchange = recorded('', asks(said('Do it.')), { wire: 'openai-responses', answer });
  expect(turnsInOrder([exchange]).obstacle?.what).toBe(
    'it has a custom_tool_call, which is not a shell command',
  );
});
