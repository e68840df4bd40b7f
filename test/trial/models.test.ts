import { describe, expect, test, vi } from 'vitest';
import { openBudget } from '../../src/gateway/budget.ts';
import { relayPort } from '../../src/gateway/relay/relay.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { scriptedModels } from './scripted-models.ts';
import { bench, sharedBench } from './shared-bench.ts';
import { openTrialBench } from './trial-bench.ts';

const scripts = {
  worker: `
turns:
  - run: echo made > made; echo said
  - run: "false"
  - text: It is made.
    usage: { input: 1000, output: 100, cacheRead: 400 }
`,
  looking: `
turns:
  - run: curl -s http://127.0.0.1:${relayPort}/v1/models || echo nobody
  - text: Nobody is there.
`,
  failing: 'turns: [{ trouble: { error: { status: 400, message: "no such luck" } } }]\n',
  asking: `
turns:
  - when: { user: tea }
    text: Which tea?
  - when: { user: green }
    run: echo green > made
  - text: Here it is.
`,
  person: `
turns:
  - when: { user: "Which tea" }
    text: '{"thought": "fine", "action": "say", "text": "green, please"}'
  - text: '{"thought": "good", "action": "satisfied", "text": "I have it"}'
`,
};

const prices = { date: '2026-01-01', input: 10, output: 100, cacheRead: 1 };
const models: Record<string, ModelConfig> = scriptedModels(scripts, (name) => ({
  prices,
  aliases: [`${name}-alias`],
}));
sharedBench({ models });

function on(model: string, change: Partial<TrialSpec> = {}): Partial<TrialSpec> {
  return {
    model,
    modelConfig: models[model],
    harness: 'bash',
    verify: 'test "$(cat made)" = made',
    ...change,
  };
}

const ask = (path: string, body: object) =>
  `curl -sS --max-time 60 -H "authorization: Bearer $OPENAI_API_KEY" -H "content-type: application/json" -d '${JSON.stringify(body)}' "$OPENAI_BASE_URL${path}"`;

describe.concurrent('a trial with a model', () => {
  test('is worked on, measured and graded', async () => {
    const result = await bench.trial('', on('worker'));
    expect(result).toMatchObject({
      verdict: 'passed',
      harness: { ended: 'exited', exitCode: 0 },
      finalMessage: 'It is made.',
      turns: 1,
      disagreements: [],
      modelUnmeasured: false,
    });
    expect(result.trajectory?.map(({ command, exitCode, output }) => [command, exitCode, output])).toEqual([
      ['echo made > made; echo said', 0, 'said\n'],
      ['false', 1, ''],
    ]);
    const usage = result.models?.usage[0];
    expect(usage).toMatchObject({ role: 'agent', model: 'worker', requests: 3, pricesOf: '2026-01-01' });
    expect(usage?.usage.outputTokens).toBeGreaterThan(100);
    expect(usage?.usage.costUsd).toBeGreaterThan(0);
    expect(result.models?.exchanges.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test('that fails to answer is void by the model, with what was done until then kept', async () => {
    const result = await bench.trial('', on('failing'));
    expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'model', phase: 'harness' } });
    expect(result.cause?.message).toContain('no such luck');
    expect(result.artifacts).toBeDefined();
    expect(result.verifySteps).toBeUndefined();
  });

  test('may be any program: it is told where its model is, and its commands are read off the traffic', async () => {
    const call = {
      id: 'c1',
      type: 'function',
      function: { name: 'shell', arguments: '{"command":"echo made > made"}' },
    };
    const messages = [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c1', content: 'ok' },
    ];
    const first = ask('/chat/completions', { model: 'worker', messages: messages.slice(0, 1) });
    const second = ask('/chat/completions', { model: 'worker', messages });
    const run = `set -e\n${first} > first.json\necho made > made\n${second} > second.json\nenv > env.txt`;
    const result = await bench.trial(run, on('worker', { harness: 'command' }));
    expect(result).toMatchObject({ verdict: 'passed', harness: { ended: 'exited', exitCode: 0 } });
    expect(result.derivedTrajectory).toMatchObject([{ command: 'echo made > made', output: 'ok' }]);
    expect(result.models?.usage).toMatchObject([{ role: 'agent', requests: 2 }]);
  });

  test('reaches that model under its names, and no other', async () => {
    const of = (model: string) =>
      ask('/chat/completions', { model, messages: [{ role: 'user', content: 'x' }] });
    const status = (model: string) => `${of(model)} -o /dev/null -w '%{http_code}\\n'`;
    const run = ['worker', 'worker-alias', 'failing', 'person'].map(status).join('\n');
    const { trajectory } = await bench.trial(run, on('worker', { harness: 'command' }));
    expect(trajectory?.map(({ output }) => output)).toEqual(['200\n', '200\n', '404\n', '404\n']);
  });

  test('named by an alias is the same model', async () => {
    const spec = on('worker', { model: 'worker-alias' });
    expect(await bench.trial('', spec)).toMatchObject({ verdict: 'passed' });
  });

  test('that is asked from outside its sandbox has no way to it in there', async () => {
    const { trajectory, verdict } = await bench.trial('', on('looking', { verify: 'true' }));
    expect(trajectory?.[0]?.output).toBe('nobody\n');
    expect(verdict).toBe('passed');
  });

  test('reaches nothing at all where the sandbox has network none', async () => {
    const run = 'curl -sS --max-time 20 http://127.0.0.1:19734/v1/models || echo closed';
    const { trajectory } = await bench.trial(run, on('worker', { harness: 'command' }), { network: 'none' });
    expect(trajectory?.[0]?.output).toContain('closed');
  });

  test('talks to a simulated user until they have what they want', async () => {
    const user = { goal: 'a cup of green tea', prompt: 'You are brief.', model: 'person', turns: 5 };
    const spec = on('asking', { prompt: 'Make me tea.', user, verify: 'test "$(cat made)" = green' });
    const result = await bench.trial('', spec);
    expect(result).toMatchObject({ verdict: 'passed', turns: 2 });
    const said = result.events?.filter(({ kind }) => kind === 'user' || kind === 'note');
    expect(said).toMatchObject([
      { text: 'Make me tea.' },
      { text: 'green, please' },
      { text: 'the user ends the conversation: satisfied: I have it' },
    ]);
    expect(result.models?.usage.map(({ role, requests }) => [role, requests])).toEqual([
      ['agent', 3],
      ['user', 2],
    ]);
  });
});

test('a trial that spends its budget ends with that, and is graded by what it did', async () => {
  const budgets = { trial: { requests: 1 }, batch: openBudget({}, 0) };
  await using poor = await openTrialBench({ models, budgets });
  const result = await poor.trial('', on('worker'));
  expect(result).toMatchObject({ verdict: 'passed', cause: { kind: 'agent', phase: 'harness' } });
  expect(result.cause?.message).toMatch(/budget/);
  expect(result.trajectory).toHaveLength(1);
});

test('the commands of the last exchange are known, although the harness ended before it was kept', async () => {
  const kept = ModelConfig.parse({ ...models.worker, record: 'full' });
  const ended = Promise.withResolvers<void>();
  await using slow = await openTrialBench({
    models: { worker: kept },
    engine: {
      ...bench.engine,
      capabilities: bench.engine.capabilities,
      async createContainer(spec, signal) {
        const container = await bench.engine.createContainer(spec, signal);
        const killAll: typeof container.killAll = async (given) => {
          const killed = await container.killAll(given);
          // After what follows at once.
          setImmediate(ended.resolve);
          return killed;
        };
        return { ...container, killAll };
      },
    },
  });
  const { put } = slow.blobs;
  vi.spyOn(slow.blobs, 'put').mockImplementation(async (content) => {
    if (content instanceof Buffer && content.includes('make all')) await ended.promise;
    return put.call(slow.blobs, content);
  });
  const call = {
    id: 'c1',
    type: 'function',
    function: { name: 'shell', arguments: '{"command":"make all"}' },
  };
  const messages = [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c1', content: 'ok' },
  ];
  const result = await slow.trial(
    ask('/chat/completions', { model: 'worker', messages }),
    on('worker', {
      harness: 'command',
      modelConfig: kept,
      verify: 'true',
    }),
  );
  expect(result.derivedTrajectory).toMatchObject([{ command: 'make all', output: 'ok' }]);
});
