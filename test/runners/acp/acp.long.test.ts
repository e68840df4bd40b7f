import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acp } from '../../../runners/acp/runner.ts';
import { acpMessages } from '../../../src/bounds/sandbox.ts';
import type { HarnessRun } from '../../../src/harness/runner.ts';
import type { Profile } from '../../../src/suite/plan.ts';
import { openRunnerBench, type RunnerBench } from '../runner-bench.ts';

const program = readFileSync(new URL('./agent-program.mjs', import.meta.url));
let bench: RunnerBench;
beforeAll(async () => {
  bench = await openRunnerBench(acp);
});
afterAll(() => bench?.[Symbol.asyncDispose]());
const timeout = 120_000;

async function agentThat(behavior: string, profile: Partial<Profile> = {}) {
  const run = `exec node /opt/agent.mjs '${behavior}' "$@"`;
  const sandbox = await bench.sandbox([], { profile: { run, ...profile } });
  await sandbox.container.put([{ path: '/opt/agent.mjs', content: program }]);
  return sandbox;
}

async function turnOf(behavior: string, timeoutMs = 60_000): Promise<HarnessRun> {
  await using sandbox = await agentThat(behavior);
  const run = await sandbox.session.turn('Do it.', { ...sandbox.unhurried, timeoutMs });
  await sandbox.session.end?.();
  expect(await sandbox.container.processes()).not.toContainEqual(
    expect.objectContaining({ command: expect.stringContaining('agent.mjs') }),
  );
  return run;
}

describe('an agent that speaks the Agent Client Protocol', { timeout }, () => {
  test('gets its prompt, permissions, terminals and tool servers, and all it says is recorded', async () => {
    const servers = {
      local: { command: 'node', args: ['x.js'], env: { A: '1' } },
      remote: { url: 'http://localhost:1/mcp', transport: 'http', headers: { B: '2' } },
    } as const;
    const mcpServers = { local: { ...servers.local, args: [...servers.local.args] }, remote: servers.remote };
    await using sandbox = await agentThat('does everything', { mcpServers });
    const run = await sandbox.session.turn('Do it.', sandbox.unhurried);
    expect(run).toMatchObject({ ending: { ended: 'exited', exitCode: 0 }, version: '9.8.7' });
    expect(sandbox.session.commandsFrom).toBe('report');
    // The two streams of a program come in no order.
    const text = expect.stringMatching(/^(err\n)?out\n(err\n)?0\n(err\n)?\/workspace\n(err\n)?$/);
    expect(run.trajectory).toMatchObject([
      { command: 'echo out; echo err >&2; id -u; pwd; exit 3', exitCode: 3, output: text },
      { command: 'sleep 600' },
      { command: 'no-such-program x', exitCode: 127 },
      { command: 'seq 1 100', exitCode: 0 },
    ]);
    expect(run.trajectory).toHaveLength(4);
    expect(run.trajectory[1]).not.toHaveProperty('exitCode');
    expect(run.events.slice(0, 5)).toMatchObject([
      { kind: 'note', text: 'thinks: I think hard.' },
      { kind: 'message', text: 'I begin.' },
      { kind: 'note', text: 'plans:\ntest (in_progress)' },
      { kind: 'message', text: 'chosen y' },
      { kind: 'tool', name: 'Edit a', input: { path: 'a' }, output: 'no', failed: true },
    ]);
    expect(JSON.parse(run.finalMessage ?? '')).toEqual({
      prompt: 'Do it.',
      exit: { exitCode: 3 },
      output: { output: text, truncated: false, exitStatus: { exitCode: 3 } },
      // Not offered: the agent reads its files itself.
      fs: -32601,
      killed: { signal: 'SIGKILL' },
      lacking: { exitCode: 127 },
      last: { output: '99\n100\n', truncated: true, exitStatus: { exitCode: 0 } },
      servers: [
        { name: 'local', command: 'node', args: ['x.js'], env: [{ name: 'A', value: '1' }] },
        { name: 'remote', type: 'http', url: 'http://localhost:1/mcp', headers: [{ name: 'B', value: '2' }] },
      ],
    });
    const second = await sandbox.session.turn('And again.', sandbox.unhurried);
    expect(JSON.parse(second.finalMessage ?? '')).toMatchObject({ prompt: 'And again.' });
    expect(second.trajectory).toHaveLength(4);
    await sandbox.session.end?.();
  });

  test.each([
    ['stops at its limit', 'agent-failed', 'limit of requests'],
    ['refuses', 'agent-failed', 'refused to continue'],
    ['stops for no known reason', 'agent-failed', 'tired'],
    ['fails', 'model-failed', 'the model answered 500'],
    ['is not there', 'runner-broke', 'exited with 4'],
    ['opens no session', 'runner-broke', 'offers no login with a key: browser'],
  ])('that %s has ended as %s', async (behavior, ended, message) => {
    const { ending } = await turnOf(behavior);
    expect(ending).toMatchObject({ ended, message: expect.stringContaining(message) });
  });

  test('that does not speak sse is not asked to use such a server', async () => {
    const mcpServers = { far: { url: 'http://localhost:1/sse', transport: 'sse' as const } };
    await using sandbox = await agentThat('refuses', { mcpServers });
    const { ending } = await sandbox.session.turn('Do it.', sandbox.unhurried);
    expect(ending).toMatchObject({
      message: expect.stringContaining('cannot speak sse to the tool server far'),
    });
  });
});

describe('a hostile agent', { timeout }, () => {
  test('that never answers is cancelled, then ended at its deadline', async () => {
    const run = await turnOf('never answers', 1_500);
    expect(run.ending).toEqual({ ended: 'timed-out', afterMs: 1_500 });
    expect(run.finalMessage).toBe('cancelled');
  });

  test('that prints garbage is read on, and nothing of it reaches the terminal', async () => {
    const printed: unknown[] = [];
    const { error } = console;
    console.error = (...all: unknown[]) => printed.push(all);
    try {
      const run = await turnOf('prints garbage');
      expect(run).toMatchObject({ ending: { ended: 'exited' }, isCut: true });
      expect(run.events).toContainEqual(
        expect.objectContaining({ kind: 'note', text: 'Segmentation fault?' }),
      );
      const codes = [-32601, -32602, -32602, -32602, -32602, -32002];
      expect(JSON.parse(run.finalMessage ?? '')).toEqual(codes);
    } finally {
      console.error = error;
    }
    expect(printed).toEqual([]);
  });

  test('that repeats the id of a request gets one answer and one refusal', async () => {
    const { finalMessage } = await turnOf('repeats ids');
    expect(JSON.parse(finalMessage ?? '')).toEqual([-32600, 0]);
  });

  test('that asks for many terminals gets a bounded number', async () => {
    const run = await turnOf('asks for many terminals');
    expect(JSON.parse(run.finalMessage ?? '')).toEqual({ made: acpMessages.count.terminals });
  });

  test.each([
    ['prints a huge line', 'too large to be read'],
    ['prints a deep line', 'nested too deep to be read'],
    ['asks and does not read', 'does not read what it is sent'],
  ])('that %s is ended', async (behavior, reason) => {
    const { ending } = await turnOf(behavior);
    expect(ending).toMatchObject({ ended: 'agent-failed', message: expect.stringContaining(reason) });
  });

  test('that floods with updates keeps the first ones and its last message', async () => {
    const run = await turnOf('floods with updates');
    expect(run).toMatchObject({ ending: { ended: 'exited' }, isCut: true, finalMessage: 'the end' });
    expect(JSON.stringify(run.events).length).toBeLessThan(40 * 2 ** 20);
  });
});
