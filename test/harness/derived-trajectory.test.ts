import { describe, expect, test } from 'vitest';
import { derivedCommands } from '../../src/bounds/sandbox.ts';
import type { ModelExchange } from '../../src/gateway/gateway.ts';
import { DerivedTrajectory } from '../../src/harness/derived-trajectory.ts';
import type { Wire } from '../../src/suite/model-config.ts';

const bodies: Record<Wire, unknown> = {
  'openai-chat': {
    messages: [
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        tool_calls: [{ id: 'a', function: { name: 'bash', arguments: '{"command":"ls -l"}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'total 0\n' },
    ],
  },
  'openai-responses': {
    input: [
      { role: 'user', content: 'go' },
      { type: 'function_call', call_id: 'a', name: 'shell', arguments: '{"cmd":["ls","-l"]}' },
      { type: 'function_call_output', call_id: 'a', output: 'total 0\n' },
    ],
  },
  'anthropic-messages': {
    messages: [
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'a', name: 'Bash', input: { command: 'ls -l' } }],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'total 0\n' }] }],
      },
    ],
  },
  gemini: {
    contents: [
      { role: 'user', parts: [{ text: 'go' }] },
      { role: 'model', parts: [{ functionCall: { name: 'run_shell_command', args: { command: 'ls -l' } } }] },
      {
        role: 'user',
        parts: [{ functionResponse: { name: 'run_shell_command', response: { output: 'total 0\n' } } }],
      },
    ],
  },
};

function exchange(wire: Wire, startedAt: number): ModelExchange {
  return {
    role: 'agent',
    model: 'm',
    wire,
    path: '/',
    streamed: false,
    startedAt,
    firstByteAt: startedAt + 5,
    finishedAt: startedAt + 10,
    status: 200,
    failedTries: [],
    failure: undefined,
    usage: {},
    answeredBy: 'm',
    requestBytes: 0,
    responseBytes: 0,
    requestBody: undefined,
    responseBody: undefined,
  };
}

describe('commands rebuilt from model traffic', () => {
  test.each(Object.keys(bodies) as Wire[])('are found once in %s, with times and output', (wire) => {
    const derived = new DerivedTrajectory();
    const body = Buffer.from(JSON.stringify(bodies[wire]));
    derived.add(exchange(wire, 1_000), Buffer.from('{"messages":[],"input":[]}'));
    derived.add(exchange(wire, 2_000), body);
    // The next request repeats the whole conversation.
    derived.add(exchange(wire, 3_000), body);
    expect(derived.entries()).toEqual([
      {
        _tag: 'command',
        command: 'ls -l',
        startedAtMillis: 1_010,
        finishedAtMillis: 2_000,
        timesBy: 'arrival',
        output: 'total 0\n',
        outputTruncated: false,
      },
    ]);
  });

  test('are several where a call has a list of commands', () => {
    const derived = new DerivedTrajectory();
    const call = (id: string, commands: string[]) => ({
      role: 'assistant',
      tool_calls: [{ id, function: { name: 'run_commands', arguments: JSON.stringify({ commands }) } }],
    });
    const results = [
      { query: 'echo a', result: 'a\n', success: true },
      { query: 'echo b; false', result: 'b\n', success: false },
    ];
    const messages = [
      call('a', ['echo a', 'echo b; false']),
      { role: 'tool', tool_call_id: 'a', content: JSON.stringify(results) },
      call('b', ['echo c', 'echo d']),
      { role: 'tool', tool_call_id: 'b', content: 'c\nd\n' },
      {
        role: 'assistant',
        tool_calls: [{ id: 'c', function: { name: 'bash', arguments: '{"command":"cat results.json"}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: '[{"result":"e"}]' },
    ];
    derived.add(exchange('openai-chat', 1_000), Buffer.from(JSON.stringify({ messages })));
    expect(derived.entries().map(({ command, output }) => ({ command, output }))).toEqual([
      { command: 'echo a', output: 'a\n' },
      { command: 'echo b; false', output: 'b\n' },
      { command: 'echo c', output: '' },
      { command: 'echo d', output: 'c\nd\n' },
      { command: 'cat results.json', output: '[{"result":"e"}]' },
    ]);
  });

  test('a hostile list of commands stays within the limit', () => {
    const derived = new DerivedTrajectory();
    const commands = Array.from({ length: derivedCommands.count.commands + 1 }, () => ':');
    const input = { commands };
    const messages = [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'run', input }] }];
    derived.add(exchange('anthropic-messages', 1), Buffer.from(JSON.stringify({ messages })));
    expect(derived.entries()).toEqual([]);
    expect(derived.isCut).toBe(true);
  });

  test('leave out other tools, other roles, and bodies that cannot be read', () => {
    const derived = new DerivedTrajectory();
    const read = {
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: 'b', name: 'Read', input: { path: 'x' } }] },
      ],
    };
    derived.add(exchange('anthropic-messages', 1), Buffer.from(JSON.stringify(read)));
    derived.add(exchange('anthropic-messages', 2), Buffer.from('{"messages": [{"ro'));
    derived.add(
      { ...exchange('openai-chat', 3), role: 'judge' },
      Buffer.from(JSON.stringify(bodies['openai-chat'])),
    );
    expect(derived.entries()).toEqual([]);
  });
});
