import { describe, expect, test } from 'vitest';
import { bash } from '../../../runners/bash/runner.ts';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { OffsiteError } from '../../../src/base/offsite-error.ts';
import { type Container, containerOf } from '../../../src/engine/container.ts';
import { chatOver } from '../../../src/gateway/chat/chat-over.ts';
import type { HarnessRun, HarnessSession, ModelAccess } from '../../../src/harness/runner.ts';
import { type Wire, wires } from '../../../src/suite/model-config.ts';
import { type Profile, profileOf } from '../../../src/suite/plan.ts';
import {
  killFirstProcess,
  shell,
  startedContainer,
  testSpec,
  untilFile,
} from '../../engine/engine-fixture.ts';
import { container, engine, sharedContainer } from '../../engine/shared-engine.ts';
import { scripted } from '../../gateway/scripted/asking.ts';
import { byRootOfEngine } from '../../needs.ts';

sharedContainer();

interface Options {
  profile?: Partial<Profile>;
  chat?: ModelAccess['chat'];
  wire?: Wire;
  clock?: Clock;
  /** Default: the one that all tests share. */
  sandbox?: Container;
}

function session(
  turns: object[],
  { profile = {}, chat, wire = 'openai-chat', clock = systemClock, sandbox = container }: Options = {},
): HarnessSession {
  const upstream = scripted({ turns });
  return bash.open({
    container: sandbox,
    profile: profileOf(profile),
    env: { TASK: 'from the environment' },
    workspace: '/workspace',
    home: '/offsite/harness',
    clock,
    model: {
      name: 'm',
      wire,
      origin: 'http://127.0.0.1:1',
      token: 'none',
      variables: {},
      contextWindow: undefined,
      maxOutputTokens: undefined,
      chat: chat ?? ((request, signal) => chatOver(upstream.send, { wire, model: 'm' }, request, signal)),
    },
  });
}

const limits = (more: Partial<{ timeoutMs: number; signal: AbortSignal; stop: AbortSignal }> = {}) => ({
  timeoutMs: 200_000,
  signal: new AbortController().signal,
  stop: new AbortController().signal,
  ...more,
});

const turn = (turns: object[], options?: Options) => session(turns, options).turn('Do it.', limits());
const commands = ({ trajectory }: HarnessRun) =>
  trajectory.map(({ command, exitCode }) => [command, exitCode]);

describe('the bash harness', () => {
  test.each(wires)('runs what the model asks for until it asks for nothing more, over %s', async (wire) => {
    const run = await turn(
      [
        { text: 'I look.', run: ['pwd; echo "$TASK"', 'echo out; echo err >&2; echo out; exit 3'] },
        { when: { result: 'exit code 3' }, run: 'echo done > /tmp/done && cat /tmp/done' },
        { text: 'All done.' },
      ],
      { wire },
    );
    expect(run.ending).toEqual({ ended: 'exited', exitCode: 0 });
    expect(run.trajectory).toMatchObject([
      { exitCode: 0, output: '/workspace\nfrom the environment\n', outputTruncated: false },
      { exitCode: 3, output: 'out\nerr\nout\n' },
      { exitCode: 0, output: 'done\n' },
    ]);
    const times = run.trajectory.flatMap(({ startedAtMillis, finishedAtMillis }) => [
      startedAtMillis,
      finishedAtMillis,
    ]);
    expect(times).toEqual(times.toSorted((a, b) => Number(a) - Number(b)));
    expect(run.finalMessage).toBe('All done.');
    expect(run.events.map(({ kind }) => kind)).toEqual(['message', 'message']);
  });

  test('goes on with a second message in the same conversation', async () => {
    const going = session([
      { run: 'echo 1' },
      { text: 'First.' },
      { when: { user: 'more', anyUser: 'Do it.', anyResult: '1' }, run: 'echo 2' },
      { text: 'Second.' },
    ]);
    await going.turn('Do it.', limits());
    const run = await going.turn('more', limits());
    expect(commands(run)).toEqual([['echo 2', 0]]);
    expect(run.finalMessage).toBe('Second.');
  });

  test('keeps beginning and end of a long output, and says so', async () => {
    const run = await turn([{ run: 'seq 1 100000' }, { when: { result: 'bytes cut' }, text: 'Seen.' }]);
    expect(run.trajectory[0]).toMatchObject({ exitCode: 0, outputTruncated: true });
    expect(run.trajectory[0]?.output).toMatch(/^1\n2\n[\s\S]*bytes cut[\s\S]*100000\n$/);
    expect(run.finalMessage).toBe('Seen.');
  });

  test('kills a command that takes too long, and lets the model go on', async () => {
    const calls = [{ tool: 'bash', arguments: { command: 'sleep 1000', timeout: 1 } }];
    const run = await turn([{ calls }, { when: { result: 'killed after 1 s' }, text: 'Too slow.' }]);
    expect(run.trajectory).toMatchObject([{ command: 'sleep 1000' }]);
    expect(run.trajectory[0]).not.toHaveProperty('exitCode');
    expect(run.finalMessage).toBe('Too slow.');
  });

  test('tells the model of its mistakes and runs nothing', async () => {
    const run = await turn([
      { calls: [{ tool: 'edit', arguments: { path: 'a' } }] },
      { when: { result: 'There is no tool edit' }, calls: [{ tool: 'bash', arguments: '{"command": ' }] },
      {
        when: { result: 'must be a JSON object' },
        calls: [{ tool: 'bash', arguments: { command: 'ls', timeout: -1 } }],
      },
      { when: { result: 'number of seconds' }, run: 'echo cut', stop: 'length' },
      { when: { result: 'was cut' }, text: 'Understood.' },
    ]);
    expect(run.finalMessage).toBe('Understood.');
    expect(run.trajectory).toEqual([]);
    expect(run.events.filter(({ kind }) => kind === 'tool')).toHaveLength(4);
  });

  test('leaves a folder that the agent removed to the agent', async () => {
    await using sandbox = await startedContainer(engine);
    const run = await turn(
      [
        { run: 'rm -rf /workspace' },
        { run: 'ls' },
        { when: { result: 'could not be started' }, text: 'Oh.' },
      ],
      { sandbox },
    );
    expect(run.finalMessage).toBe('Oh.');
  });
});

describe('the bash harness ends', () => {
  test('at the turns that its profile allows', async () => {
    const run = await turn([{ run: 'echo again', repeat: true }], { profile: { maxTurns: 2 } });
    expect(run.ending).toMatchObject({
      ended: 'agent-failed',
      message: expect.stringContaining('within 2 turns'),
    });
    expect(run.trajectory).toHaveLength(2);
  });

  test.each([
    [{ text: 'no', stop: 'refusal' }, 'agent-failed', /refused to continue: no/],
    [{ text: 'half an ans', stop: 'length' }, 'agent-failed', /cut at its limit/],
    [{ trouble: { error: { status: 500, message: 'oops' } } }, 'model-failed', /oops/],
    [{ trouble: { garbage: true } }, 'model-failed', /not valid in openai-chat/],
    [{ trouble: { cut: { afterBytes: 10 } } }, 'model-failed', /cuts/],
    [{ trouble: { error: { status: 400, message: 'prompt is too long' } } }, 'agent-failed', /too long/],
  ])('by the model: %j, and keeps what was done', async (last, ended, message) => {
    const run = await turn([{ run: 'echo kept' }, last]);
    expect(run.ending).toEqual({ ended, message: expect.stringMatching(message) });
    expect(commands(run)).toEqual([['echo kept', 0]]);
  });

  test('when its time is up, in the middle of a command', async () => {
    const { promise: expiry, resolve: expire } = Promise.withResolvers<void>();
    const clock: Clock = { ...systemClock, sleep: () => expiry };
    const turns = [{ run: 'echo kept' }, { run: 'touch /tmp/late; sleep 1000' }];
    const run = session(turns, { clock }).turn('Do it.', limits({ timeoutMs: 4000 }));
    await shell(container, 'until test -e /tmp/late; do sleep 0.05; done');
    expire();
    const { ending, trajectory } = await run;
    expect(ending).toEqual({ ended: 'timed-out', afterMs: 4000 });
    expect(trajectory).toMatchObject([{ exitCode: 0 }, { command: 'touch /tmp/late; sleep 1000' }]);
    expect(trajectory[1]).not.toHaveProperty('exitCode');
  });

  test('when its time is up, while the model hangs', async () => {
    const run = await session([{ trouble: { hang: true } }]).turn('Do it.', limits({ timeoutMs: 50 }));
    expect(run.ending).toEqual({ ended: 'timed-out', afterMs: 50 });
  });

  test('when it is stopped, with the reason of that', async () => {
    const stop = new AbortController();
    const chat: ModelAccess['chat'] = (_request, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        stop.abort(new Error('the budget is spent'));
      });
    const run = await session([{ text: 'x' }], { chat }).turn('Do it.', limits({ stop: stop.signal }));
    expect(run.ending).toEqual({ ended: 'stopped', message: 'the budget is spent' });
  });

  test('when a budget is spent', async () => {
    const chat = () =>
      Promise.reject(new OffsiteError('5 requests of 5', { code: 'BUDGET_SPENT', kind: 'input' }));
    expect((await turn([{ text: 'x' }], { chat })).ending).toEqual({
      ended: 'stopped',
      message: '5 requests of 5',
    });
  });

  test('with the trial', async () => {
    const trial = new AbortController();
    const asked = session([{ trouble: { hang: true } }]).turn('Do it.', limits({ signal: trial.signal }));
    trial.abort(new Error('canceled'));
    await expect(asked).rejects.toThrow('canceled');
  });

  test('before it begins, where there is no model', () => {
    const place = {
      container,
      profile: profileOf({}),
      env: {},
      workspace: '/',
      home: '/',
      clock: systemClock,
    };
    expect(() => bash.open({ ...place, model: undefined })).toThrow(/has no model/);
  });
});

byRootOfEngine.test(
  'a turn whose command ends the sandbox keeps its record, and nothing else runs',
  async () => {
    await using started = await startedContainer(engine);
    // As with a kernel of its own.
    const endable = containerOf(engine.port, started.id, await testSpec(engine), {
      runtime: { listsProcesses: false, protectsPaths: true },
    });
    const sandbox: Container = {
      ...endable,
      exec: (request) => endable.exec({ ...request, mayEndContainer: true }),
    };
    const first = ': > /var/tmp/begun; sleep 600';
    const running = turn([{ run: first }, { run: 'echo second' }, { text: 'Done.' }], { sandbox });
    await untilFile(engine, '/var/tmp/begun');
    await killFirstProcess(engine, started.id);
    const run = await running;
    expect(commands(run)).toEqual([[first, 137]]);
    expect(run.ending).toMatchObject({
      ended: 'agent-failed',
      message: expect.stringContaining('The sandbox has ended by itself'),
    });
  },
);
