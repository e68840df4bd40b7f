import { describe, expect, test } from 'vitest';
import type { Upstream } from '../../../src/gateway/answer.ts';
import type { ChatMessage, ChatRequest } from '../../../src/gateway/chat/chat.ts';
import { chatOver } from '../../../src/gateway/chat/chat-over.ts';
import { type Document, document, scripted, shellOffered, wires } from './asking.ts';

const bash = {
  name: 'bash',
  description: 'runs',
  parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
};

/** What a judge asks for. */
const form = {
  type: 'json_schema',
  json_schema: { name: 'judgment', schema: { type: 'object', properties: { score: { type: 'number' } } } },
};

/**
 * Talks to the model as a harness does: sends the whole conversation each time, and answers every call with
 * the result of `run`.
 */
class Harness {
  readonly messages: ChatMessage[] = [];
  readonly #upstream: Upstream;
  readonly #run: (command: string) => string;
  readonly #wire: (typeof wires)[number];

  constructor(
    upstream: Upstream,
    run: (command: string) => string = () => 'ok',
    wire: (typeof wires)[number] = wires[0],
  ) {
    this.#upstream = upstream;
    this.#run = run;
    this.#wire = wire;
  }

  async ask(request: Partial<ChatRequest> = {}) {
    return chatOver(
      (...asked) => this.#upstream.send(...asked),
      { wire: this.#wire, model: 'm' },
      { messages: this.messages, tools: [bash], ...request },
      AbortSignal.timeout(60_000),
    );
  }

  /**
   * Sends a message and works until the model has nothing more to run; returns the commands and the model's
   * last message.
   */
  async turn(message: string): Promise<{ ran: string[]; said: string }> {
    this.messages.push({ from: 'user', text: message });
    const ran: string[] = [];
    while (true) {
      const { text, calls } = await this.ask();
      this.messages.push({ from: 'model', text, calls });
      if (calls.length === 0) return { ran, said: text };
      for (const call of calls) {
        const command = String((call.arguments as Document).command);
        ran.push(command);
        this.messages.push({ from: 'tool', callId: call.id, text: this.#run(command), failed: false });
      }
    }
  }
}

const task = {
  turns: [{ text: 'I look.', run: 'ls' }, { run: ['make', 'make test'] }, { text: 'Done.' }],
};

describe('the turn that answers', () => {
  test.each(wires)('is the next one of the script, in %s', async (wire) => {
    const harness = new Harness(scripted(task), undefined, wire);
    expect(await harness.turn('Build it')).toEqual({ ran: ['ls', 'make', 'make test'], said: 'Done.' });
  });

  test('is the same again when a request is tried again', async () => {
    const upstream = scripted(task);
    const harness = new Harness(upstream);
    harness.messages.push({ from: 'user', text: 'Build it' });
    expect(await harness.ask()).toEqual(await harness.ask());
  });

  test('is not moved on by other conversations with the same model', async () => {
    const upstream = scripted(task);
    const turns = await Promise.all([1, 2, 3].map((n) => new Harness(upstream).turn(`Build ${n}`)));
    expect(turns.map(({ ran }) => ran.length)).toEqual([3, 3, 3]);
  });

  test('depends on what a tool gave', async () => {
    const upstream = scripted({
      turns: [
        { run: 'make test' },
        { when: { result: 'FAILED' }, run: 'fix' },
        { when: { result: { matches: '^ok\\b' } }, text: 'It works.' },
        { when: { turn: 3 }, text: 'Mended.' },
      ],
    });
    expect(await new Harness(upstream, () => 'ok 3').turn('x')).toEqual({
      ran: ['make test'],
      said: 'It works.',
    });
    const failing = new Harness(upstream, (command) => (command === 'fix' ? 'fixed' : 'FAILED 1'));
    expect(await failing.turn('x')).toEqual({ ran: ['make test', 'fix'], said: 'Mended.' });
  });

  test('depends on the task, and on the second message of the user', async () => {
    const upstream = scripted({
      turns: [
        { when: { user: 'again' }, run: 'second' },
        { when: { user: 'again', last: 'tool' }, text: 'Second done.' },
        { when: { anyUser: 'cats', last: 'user' }, run: 'feed' },
        { text: 'First done.' },
      ],
    });
    const harness = new Harness(upstream);
    expect(await harness.turn('about cats')).toEqual({ ran: ['feed'], said: 'First done.' });
    expect(await harness.turn('again')).toEqual({ ran: ['second'], said: 'Second done.' });
  });

  test('depends on system text, wire and model', async () => {
    const upstream = scripted({
      turns: [
        { when: { system: 'judge' }, text: 'as judge' },
        { when: { wire: 'openai-responses' }, text: 'over responses' },
        { when: { model: { matches: '^big' } }, text: 'as the big one' },
      ],
      otherwise: 'neither',
    });
    const say = (wire: (typeof wires)[number], system: string, model: string) =>
      chatOver(
        (...asked) => upstream.send(...asked),
        { wire, model },
        { system, messages: [{ from: 'user', text: 'x' }] },
        AbortSignal.timeout(60_000),
      ).then(({ text }) => text);
    expect(await say('anthropic-messages', 'You are a judge.', 'small')).toBe('as judge');
    expect(await say('openai-responses', '', 'small')).toBe('over responses');
    expect(await say('openai-chat', '', 'big-1')).toBe('as the big one');
    expect(await say('openai-chat', '', 'small')).toBe('neither');
  });

  test('may be one that repeats, for an agent that never stops', async () => {
    const upstream = scripted({
      turns: [
        { when: { turn: 3 }, text: 'Enough.' },
        { run: 'again', repeat: true },
      ],
    });
    expect(await new Harness(upstream).turn('x')).toEqual({ ran: ['again', 'again'], said: 'Enough.' });
  });

  test('is none of an agent that works, for a side question without tools', async () => {
    const harness = new Harness(scripted({ ...task, otherwise: 'A title' }));
    harness.messages.push({ from: 'user', text: 'Build it' });
    expect((await harness.ask({ tools: [] })).text).toBe('A title');
    expect((await harness.ask()).text).toBe('I look.');
  });

  test('may be meant for side questions', async () => {
    const harness = new Harness(
      scripted({ turns: [{ when: { tools: false, system: 'title' }, text: 'Building' }, ...task.turns] }),
    );
    harness.messages.push({ from: 'user', text: 'Build it' });
    expect((await harness.ask({ tools: [], system: 'Give a title' })).text).toBe('Building');
  });

  test('is not used up by messages that a harness puts into the mouth of the model', async () => {
    const harness = new Harness(scripted(task));
    harness.messages.push(
      { from: 'user', text: 'These are your surroundings' },
      { from: 'model', text: 'Understood.', calls: [] },
    );
    expect((await harness.turn('Build it')).ran).toEqual(['ls', 'make', 'make test']);
  });
});

describe('the shell tool', () => {
  test.each([
    ['bash', { command: { type: 'string' } }, ['command'], { command: 'ls' }],
    ['exec_command', { cmd: { type: 'string' }, tty: { type: 'boolean' } }, ['cmd'], { cmd: 'ls' }],
    [
      'Bash',
      { command: { type: 'string' }, description: { type: 'string' } },
      ['command', 'description'],
      { command: 'ls', description: 'Run a command' },
    ],
    [
      'run_shell_command',
      { command: { type: 'string' }, is_background: { type: 'boolean' } },
      ['command', 'is_background'],
      { command: 'ls', is_background: false },
    ],
    [
      'some_other_name',
      {
        script: { type: 'string' },
        shell: { type: 'string', enum: ['sh', 'zsh'] },
        n: { type: 'integer', minimum: 2 },
      },
      ['script', 'shell', 'n'],
      { script: 'ls', shell: 'sh', n: 2 },
    ],
    ['shell', { command: { type: 'array' } }, ['command'], { command: ['bash', '-lc', 'ls'] }],
  ])('is found as %s, with what it requires', async (name, properties, required, expected) => {
    const upstream = scripted({ turns: [{ run: 'ls' }] });
    const other = shellOffered('openai-chat', 'read_file', { properties: { path: {} }, required: ['path'] });
    const tools = [...other, ...shellOffered('openai-chat', name, { type: 'object', properties, required })];
    const { document: answer } = await document(upstream, 'openai-chat', {
      messages: [{ role: 'user', content: 'x' }],
      tools,
    });
    const [call] = answer.choices[0].message.tool_calls;
    expect(call.function.name).toBe(name);
    expect(JSON.parse(call.function.arguments)).toEqual(expected);
  });

  test('that is missing is said, with the tools there are', async () => {
    const { status, document: answer } = await document(scripted({ turns: [{ run: 'ls' }] }), 'openai-chat', {
      messages: [{ role: 'user', content: 'x' }],
      tools: shellOffered('openai-chat', 'read_file', {}),
    });
    expect(status).toBe(400);
    expect(answer.error.message).toMatch(/no tool of the request looks like a shell: read_file/);
  });
});

describe('what harnesses add to a conversation', () => {
  test('an end of a turn that mini-swe-agent accepts is a command', async () => {
    const submit = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';
    const upstream = scripted({
      turns: [{ run: 'ls' }, { text: 'Done.' }, { run: 'pwd' }, { text: 'All is done.' }],
    });
    const harness = new Harness(upstream);
    harness.messages.push({ from: 'user', text: `Do it. To end the task, issue \`${submit}\`.` });
    const answers = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const { text, calls } = await harness.ask();
      answers.push([text, ...calls.map((call) => (call.arguments as Document).command)]);
      harness.messages.push({ from: 'model', text, calls });
      for (const { id } of calls)
        harness.messages.push({ from: 'tool', callId: id, text: 'ok', failed: false });
      if (turn === 1) harness.messages.push({ from: 'user', text: 'Do more.' });
    }
    expect(answers).toEqual([
      ['', 'ls'],
      ['Done.', submit],
      ['', 'pwd'],
      ['All is done.', submit],
    ]);
  });

  test("Claude Code's reminders beside tool results are not the user's words", async () => {
    const upstream = scripted({ turns: [{ run: 'ls' }, { when: { user: 'Build' }, text: 'right' }] });
    const { document: answer } = await document(upstream, 'anthropic-messages', {
      tools: shellOffered('anthropic-messages', 'Bash', { properties: { command: {} } }),
      messages: [
        { role: 'user', content: 'Build it' },
        { role: 'system', content: 'The date has changed.' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'Bash', input: {} }] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'ok' }] },
            { type: 'text', text: '<system-reminder>Todo list is empty.</system-reminder>' },
          ],
        },
      ],
    });
    expect(answer.content[0].text).toBe('right');
  });
});

test.each([
  ['an agent whose script has no turn for its task', { tools: true }, 'another task', true],
  ['an agent whose script has one', { tools: true }, 'the task', undefined],
  ['a title, for which no script needs a turn', { tools: false }, 'another task', undefined],
  ['a judge whose script has no turn', { tools: false, response_format: form }, 'another task', true],
] as const)(
  'an answer says whether a script has nothing for a conversation: %s',
  async (_, given, text, lost) => {
    const { tools, ...more } = given;
    const body = {
      model: 'm',
      messages: [{ role: 'user', content: text }],
      ...more,
      ...(tools && { tools: [{ type: 'function', function: bash }] }),
    };
    const upstream = scripted({ turns: [{ when: { user: 'the task' }, text: 'Done.' }] });
    const answer = await upstream.send(
      {
        wire: 'openai-chat',
        method: 'POST',
        path: '/chat/completions',
        headers: {},
        body: Buffer.from(JSON.stringify(body)),
      },
      AbortSignal.timeout(60_000),
    );
    expect([answer.status, answer.unscripted]).toEqual([200, lost]);
  },
);
