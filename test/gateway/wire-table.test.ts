import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../src/gateway/chat/chat.ts';
import { writeChat } from '../../src/gateway/chat/chat-over.ts';
import { meterOf } from '../../src/gateway/metering.ts';
import { readModelList } from '../../src/gateway/probe/look-at-server.ts';
import { scriptedDocument } from '../../src/gateway/scripted/conversation.ts';
import { wholeAnswer } from '../../src/gateway/translation/answer-stream.ts';
import { Losses } from '../../src/gateway/translation/losses.ts';
import type { NeutralAnswer } from '../../src/gateway/translation/neutral-answer.ts';
import { callIds } from '../../src/gateway/translation/stream-steps.ts';
import { allWires, wireTable } from '../../src/gateway/wires/wire-table.ts';
import { wires } from '../../src/suite/model-config.ts';

const chat: ChatRequest = {
  system: 'Be brief.',
  messages: [
    { from: 'user', text: 'What is here?' },
    { from: 'model', text: 'I look.', calls: [{ id: 'call_1', name: 'bash', arguments: { command: 'ls' } }] },
    { from: 'tool', callId: 'call_1', text: 'a.txt', failed: false },
    { from: 'model', text: 'One file.', calls: [] },
    { from: 'user', text: 'Thanks.' },
  ],
  tools: [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object' } }],
};

const answer: NeutralAnswer = {
  id: 'abc',
  model: 'm-1',
  parts: [
    { type: 'text', text: 'I look.' },
    { type: 'call', id: 'call_1', name: 'bash', arguments: '{"command":"ls"}' },
  ],
  stop: 'tools',
  usage: { input: 100, output: 10, cacheRead: 20 },
};

const conversation = { model: 'm-1', streamed: false, usageAsked: true, system: '', length: 0 };

const junk: unknown[] = [undefined, null, 0, 'x', [], [null], {}, { usage: null, choices: 1, output: {} }];

test('the table has every wire under its own name, and no path twice', () => {
  expect(wires.map((name) => wireTable[name].name)).toEqual([...wires]);
  const paths = allWires.flatMap(({ endpoints }) => endpoints.map(({ path }) => path));
  expect(new Set(paths).size).toBe(paths.length);
});

describe.each(allWires)('$name', ({ name, translation, models }) => {
  test('reads from its own list of models what was written into it, and takes no other for its own', () => {
    const list = readModelList(models.list(['m-1', 'm-2']));
    expect(list?.models).toEqual([{ id: 'm-1' }, { id: 'm-2' }]);
    expect(list?.wire.models).toBe(models);
    for (const body of junk) expect(readModelList(body)).toBeUndefined();
  });

  test('reads from its own request what was written into it', () => {
    const body = writeChat(wireTable[name], 'm-1', chat);
    const { messages, tools } = translation.readRequest(body, new Losses('strict', 'm'));
    expect(tools).toEqual([{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object' } }]);
    const calls = messages.flatMap((message) =>
      message.from === 'model' ? message.parts.filter(({ type }) => type === 'call') : [],
    );
    expect(calls).toEqual([{ type: 'call', id: 'call_1', name: 'bash', arguments: '{"command":"ls"}' }]);
    const said = messages.map((message) => [
      message.from,
      'text' in message
        ? message.text
        : message.parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    ]);
    expect(said.filter(([, text]) => text)).toEqual([
      ['system', 'Be brief.'],
      ['user', 'What is here?'],
      ['model', 'I look.'],
      ['tool', 'a.txt'],
      ['model', 'One file.'],
      ['user', 'Thanks.'],
    ]);
    expect(messages.find(({ from }) => from === 'tool')).toMatchObject({ callId: 'call_1' });
  });

  test('reads from its own answer what was written into it', () => {
    const asked = { ...conversation, wire: name, messages: [], tools: [] };
    const document = scriptedDocument(answer, asked, 1_000).toString();
    const read = wholeAnswer(wireTable[name], document, callIds(), new Losses('strict', 'm'));
    expect(read).toMatchObject({
      parts: [
        { type: 'text', text: 'I look.' },
        { type: 'call', name: 'bash', arguments: JSON.stringify({ command: 'ls' }) },
      ],
      stop: 'tools',
      model: 'm-1',
    });
  });

  test('reads whatever comes without an error', () => {
    for (const body of junk) {
      const text = JSON.stringify(body) ?? '';
      for (const bytes of [text, `data: ${text}\n\ndata: {"type":"message_start","usage":{\n\n`]) {
        const meter = meterOf(name, 200, 'application/json');
        meter.chunk(Buffer.from(bytes));
        expect(meter.end()).toMatchObject({ usage: {}, answeredBy: undefined });
      }
      const request = { messages: body, input: [body], contents: [body], tools: body, system: body };
      const partial = new Losses('partial', 'm');
      expect(translation.readTools(request, partial)).toEqual([]);
      expect(() => translation.readMessages(request, partial)).not.toThrow();
    }
  });
});
