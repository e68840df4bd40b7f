// An agent of the protocol for tests. It does what its first argument says, without any library, so that it
// can also do what no library would.
import { createInterface } from 'node:readline';

const [, , behavior] = process.argv;
const print = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const answer = (id, result) => print({ jsonrpc: '2.0', id, result });
const update = (sessionUpdate, rest) =>
  print({
    jsonrpc: '2.0',
    method: 'session/update',
    params: { sessionId: 's1', update: { sessionUpdate, ...rest } },
  });
const say = (text, kind = 'agent_message_chunk') => update(kind, { content: { type: 'text', text } });

const waiting = new Map();
let asked = 0;
/** Asks the client; resolves with its whole answer. */
function ask(method, params) {
  asked += 1;
  const id = `own-${asked}`;
  print({ jsonrpc: '2.0', id, method, params: { sessionId: 's1', ...params } });
  return new Promise((resolve) => waiting.set(id, resolve));
}

async function terminal(command, args, more = {}) {
  const { result, error } = await ask('terminal/create', { command, args, ...more });
  return error ? { error } : { id: result.terminalId };
}

const behaviors = {
  async 'does everything'(prompt) {
    say('I think ', 'agent_thought_chunk');
    say('hard.', 'agent_thought_chunk');
    say('I ');
    say('begin.');
    update('plan', { entries: [{ content: 'test', status: 'in_progress', priority: 'high' }] });
    const options = [
      { optionId: 'n', name: 'No', kind: 'reject_once' },
      { optionId: 'y', name: 'Yes', kind: 'allow_once' },
    ];
    const { result } = await ask('session/request_permission', { toolCall: { toolCallId: 't1' }, options });
    say(`chosen ${result.outcome.optionId}`);
    update('tool_call', {
      toolCallId: 't1',
      title: 'Run',
      kind: 'execute',
      status: 'pending',
      rawInput: { command: 'false' },
    });
    const { id: terminalId } = await terminal('bash', ['-c', 'echo out; echo err >&2; id -u; pwd; exit 3']);
    update('tool_call_update', { toolCallId: 't1', content: [{ type: 'terminal', terminalId }] });
    const { result: exit } = await ask('terminal/wait_for_exit', { terminalId });
    const { result: output } = await ask('terminal/output', { terminalId });
    await ask('terminal/release', { terminalId });
    update('tool_call_update', { toolCallId: 't1', status: 'completed' });
    update('tool_call', {
      toolCallId: 't2',
      title: 'Edit a',
      kind: 'edit',
      status: 'pending',
      rawInput: { path: 'a' },
    });
    update('tool_call_update', {
      toolCallId: 't2',
      status: 'failed',
      content: [{ type: 'content', content: { type: 'text', text: 'no' } }],
    });
    const { error } = await ask('fs/read_text_file', { path: '/etc/passwd' });
    const long = await terminal('sleep', ['600']);
    await ask('terminal/kill', { terminalId: long.id });
    const { result: killed } = await ask('terminal/wait_for_exit', { terminalId: long.id });
    const absent = await terminal('no-such-program', ['x']);
    const { result: lacking } = await ask('terminal/wait_for_exit', { terminalId: absent.id });
    const tail = await terminal('seq 1 100', undefined, { outputByteLimit: 7 });
    await ask('terminal/wait_for_exit', { terminalId: tail.id });
    const { result: last } = await ask('terminal/output', { terminalId: tail.id });
    say(JSON.stringify({ prompt, exit, output, fs: error.code, killed, lacking, last, servers }));
    return 'end_turn';
  },
  'stops at its limit': () => 'max_turn_requests',
  refuses: () => 'refusal',
  'stops for no known reason': () => 'tired',
  fails: () =>
    Promise.reject({ code: -32603, message: 'Internal error', data: { details: 'the model answered 500' } }),
  'is not there': () => process.exit(4),
  'never answers': () => new Promise(() => undefined),
  async 'prints garbage'() {
    process.stdout.write(
      'Segmentation fault?\n[1,2]\n"x"\n{"jsonrpc":"2.0"}\n{"jsonrpc":"1.0","id":1,"method":"x"}\n{"id":\n\n',
    );
    print({ jsonrpc: '2.0', id: 'nobody asked', result: { '\u001b]0;title\u0007': 1 } });
    print({ jsonrpc: '2.0', id: null, method: 'terminal/create' });
    print({ jsonrpc: '2.0', id: 'x'.repeat(1000), method: 'terminal/create' });
    print({ jsonrpc: '2.0', id: 'odd', method: 'session/update', params: 3 });
    print({ jsonrpc: '2.0', method: 'session/update', params: { update: 3 } });
    print({ jsonrpc: '2.0', method: 'session/update' });
    update('agent_message_chunk', { content: 7 });
    update('of a later version', { content: 7 });
    update('tool_call', { toolCallId: 'y'.repeat(5000), title: 'long' });
    print({ jsonrpc: '2.0', method: '\u001b[31munknown', params: {} });
    const { error } = await ask('no/such_method', {});
    const { error: shape } = await ask('terminal/create', { command: 7 });
    const nul = await terminal('echo', ['a\0b']);
    const relative = await terminal('echo', ['a'], { cwd: 'workspace' });
    const long = await terminal('echo', ['x'.repeat(200_000)]);
    const { error: gone } = await ask('terminal/output', { terminalId: 'terminal-99' });
    say(JSON.stringify([error, shape, nul.error, relative.error, long.error, gone].map(({ code }) => code)));
    return 'end_turn';
  },
  async 'repeats ids'() {
    const { id: terminalId } = await terminal('sleep 1');
    const answers = [];
    const both = new Promise((resolve) => {
      waiting.set('same', (first) => {
        answers.push(first);
        waiting.set('same', (second) => resolve(answers.push(second)));
      });
    });
    const params = { sessionId: 's1', terminalId };
    const twice = { jsonrpc: '2.0', id: 'same', method: 'terminal/wait_for_exit', params };
    print(twice);
    print(twice);
    await both;
    say(JSON.stringify(answers.map(({ result, error }) => error?.code ?? result.exitCode)));
    return 'end_turn';
  },
  async 'asks for many terminals'() {
    const all = await Promise.all(Array.from({ length: 200 }, () => terminal('sleep 600')));
    say(JSON.stringify({ made: all.filter(({ id }) => id).length }));
    return 'end_turn';
  },
  'prints a huge line': () => {
    process.stdout.write(
      `{"jsonrpc":"2.0","method":"session/update","params":"${'x'.repeat(40 * 2 ** 20)}"}\n`,
    );
    return new Promise(() => undefined);
  },
  'prints a deep line': () => {
    process.stdout.write(
      `{"jsonrpc":"2.0","method":"session/update","params":${'['.repeat(9000)}${']'.repeat(9000)}}\n`,
    );
    return new Promise(() => undefined);
  },
  async 'floods with updates'() {
    const text = 'x'.repeat(10_000);
    for (let at = 0; at < 3000; at += 1) {
      say(text);
      update('tool_call', { toolCallId: `t${at}`, title: text, kind: 'edit', rawInput: { text } });
      say(text, 'agent_thought_chunk');
      if (at % 20 === 0) await new Promise((resolve) => process.stdout.write('\n', resolve));
    }
    say('the end');
    return 'end_turn';
  },
  'asks and does not read': () => {
    process.stdin.pause();
    const request = (id) => `${JSON.stringify({ jsonrpc: '2.0', id, method: 'no/such' })}\n`;
    const send = (from) => {
      let text = '';
      for (let id = from; id < from + 2000; id += 1) text += request(id);
      process.stdout.write(text, () => send(from + 2000));
    };
    send(0);
    return new Promise(() => undefined);
  },
};

let servers;
createInterface({ input: process.stdin })
  .on('line', async (line) => {
    const { id, method, params, result, error } = JSON.parse(line);
    if (method === undefined) return waiting.get(id)?.({ result, error });
    if (method === 'initialize') {
      if (behavior === 'opens no session')
        return answer(id, { protocolVersion: 1, authMethods: [{ id: 'browser', name: 'Log in' }] });
      return answer(id, {
        protocolVersion: 1,
        agentInfo: { name: 'test', version: '9.8.7' },
        authMethods: [{ id: 'api-key', name: 'Key' }],
        agentCapabilities: { mcpCapabilities: { http: true } },
      });
    }
    if (method === 'authenticate') {
      servers = params.methodId;
      return answer(id, {});
    }
    if (method === 'session/new') {
      if (servers === undefined)
        return print({ jsonrpc: '2.0', id, error: { code: -32000, message: 'Authentication required' } });
      servers = params.mcpServers;
      return answer(id, { sessionId: 's1' });
    }
    if (method === 'session/prompt') {
      try {
        const stopReason = await behaviors[behavior](params.prompt[0].text);
        answer(id, { stopReason });
      } catch (thrown) {
        print({ jsonrpc: '2.0', id, error: thrown });
      }
    }
    if (method === 'session/cancel') say('cancelled');
    return undefined;
  })
  .on('close', () => process.exit(0));
