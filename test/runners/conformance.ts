import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkMembers } from '../../src/gateway/members.ts';
import { readRequestBody } from '../../src/gateway/request-body.ts';
import type { HarnessRun, Runner } from '../../src/harness/runner.ts';
import { ModelConfig, type Wire } from '../../src/suite/model-config.ts';
import { FirstOffer } from '../../src/trial/run/first-offer.ts';
import { copySkills } from '../../src/trial/run/harness.ts';
import { usageOfAnswer } from './model-wires.ts';
import {
  installPatience,
  openRunnerBench,
  type RunnerBench,
  type RunnerSandbox,
  type Shell,
  toolServer,
  turnPatience,
} from './runner-bench.ts';

/** What a runner's conformance is told about it. */
export interface Expected {
  /** The version that its CLI says it has. */
  version: string;
  /** Whether it counts its tokens. Default: yes. */
  tellsUsage?: boolean;
  /** A file that is the CLI, and a program to put in its place that prints what it never would. */
  garbage: { path: string; program: string };
  /** The shell that it runs commands with, if it is not bash. */
  shell?: Shell;
}

/**
 * Every command of these tests names a file of this kind, so that a shell's notes of them are told from the
 * CLI's own housekeeping.
 */
const markPrefix = 'mark-';

const commandsOf = ({ trajectory }: HarnessRun) => trajectory.map(({ command }) => command);
const codesOf = ({ trajectory }: HarnessRun) => trajectory.map(({ exitCode }) => exitCode);

/**
 * What a user may rely on whatever CLI is driven: run for each runner with the real CLI, in a sealed sandbox.
 */
export function conformance(runner: Runner, expected: Expected): void {
  const usageOf = (answers: number) =>
    expected.tellsUsage === false
      ? undefined
      : expect.objectContaining({
          inputTokens: answers * usageOfAnswer.input,
          outputTokens: answers * usageOfAnswer.output,
          cacheReadTokens: answers * usageOfAnswer.cached,
        });
  let bench: RunnerBench | undefined;
  beforeAll(async () => {
    bench = await openRunnerBench(runner, expected.shell);
    // The first run of the tests on a machine installs the CLI.
  }, installPatience + 60_000);
  afterAll(() => bench?.[Symbol.asyncDispose]());

  const sandboxWith: RunnerBench['sandbox'] = (turns, options) => {
    if (bench === undefined) throw new Error(`${runner.label} could not be installed`);
    return bench.sandbox(turns, options);
  };

  // A harness that promises less has fewer tests.
  const testIf = (promised: unknown) => (promised ? test : () => undefined);

  describe(runner.label, { timeout: turnPatience * 3 }, () => {
    test('tells every command it ran, as the shell saw it, and goes on with the same conversation if it can', async () => {
      await using sandbox = await sandboxWith([
        { text: 'I begin.', commands: ['echo said > mark-one'] },
        { commands: ['cat mark-missing'] },
        { commands: ['cat mark-one mark-one'] },
        { text: 'Done.' },
        { commands: ['test -s mark-one'] },
        { text: 'It is still there.' },
      ]);
      const first = await sandbox.session.turn('Make the file.', sandbox.unhurried);
      expect(first.ending).toEqual({ ended: 'exited', exitCode: 0 });
      expect(first.version).toBe(expected.version);
      expect(first.finalMessage).toBe('Done.');
      expect(codesOf(first)).toEqual([0, 1, 0]);
      expect(first.trajectory.map(({ output }) => output?.trimEnd())).toEqual([
        '',
        'cat: mark-missing: No such file or directory',
        'said\nsaid',
      ]);
      expect(first.usage).toEqual(usageOf(4));
      expect(first.events).toContainEqual({ kind: 'message', at: expect.any(Number), text: 'I begin.' });
      for (const { startedAtMillis = 0, finishedAtMillis = 0, outputTruncated } of first.trajectory) {
        expect(startedAtMillis).toBeGreaterThan(1_700_000_000_000);
        expect(finishedAtMillis).toBeGreaterThanOrEqual(startedAtMillis);
        expect(outputTruncated).toBe(false);
      }

      const commands = commandsOf(first);
      const messages = ['Make the file.'];
      if (runner.continues) {
        messages.push('Is it there?');
        const second = await sandbox.session.turn('Is it there?', sandbox.unhurried);
        expect(second.ending).toEqual({ ended: 'exited', exitCode: 0 });
        expect(second.finalMessage).toBe('It is still there.');
        expect(second.usage).toEqual(usageOf(2));
        commands.push(...commandsOf(second));
      }
      expect(commands).toEqual(await sandbox.witnessed(markPrefix));
      const last = JSON.stringify((await sandbox.requests()).at(-1));
      for (const message of messages) expect(last).toContain(message);
      await expectToPass(sandbox, runner);
    });

    test('that is refused by its model has a failed model, and what it did before is kept', async () => {
      await using sandbox = await sandboxWith([
        { commands: ['echo before > mark-file'] },
        { status: 400, message: 'this model answers no more' },
      ]);
      const run = await sandbox.session.turn('Do it.', sandbox.unhurried);
      const modelFailed = {
        ended: 'model-failed',
        message: expect.stringContaining('this model answers no more'),
      };
      // What does not tell is found by the gateway's account, in a trial.
      expect(run.ending).toMatchObject(
        runner.reportsModelFailure === false ? { ended: 'exited' } : modelFailed,
      );
      expect(commandsOf(run)).toEqual(['echo before > mark-file']);
      expect(codesOf(run)).toEqual([0]);
      if (run.usage !== undefined) expect(run.usage).toEqual(usageOf(1));
    });

    test('whose time is up in the middle of a command keeps what it did, and nothing of it lives on', async () => {
      await using sandbox = await sandboxWith([
        { commands: ['echo before > mark-file'] },
        { commands: ['sed -n "1w mark-endless" /dev/urandom'] },
      ]);
      const turn = sandbox.session.turn('Do it.', sandbox.held);
      await sandbox.untilWitnessed('mark-endless');
      sandbox.expire();
      const run = await turn;
      expect(run.ending).toEqual({ ended: 'timed-out', afterMs: sandbox.held.timeoutMs });
      // The one that was running is told by those CLIs that tell of beginnings.
      expect(commandsOf(run).slice(0, 1)).toEqual(['echo before > mark-file']);
      expect(codesOf(run).slice(0, 2)).toEqual([0, undefined].slice(0, run.trajectory.length));
      await sandbox.container.killAll();
      expect(await sandbox.container.processes()).toEqual([]);
    });

    test('that is stopped says why, and keeps what it did', async () => {
      await using sandbox = await sandboxWith([{ commands: ['echo before > mark-file'] }, { hang: true }]);
      const budget = new AbortController();
      const turn = sandbox.session.turn('Do it.', { ...sandbox.unhurried, stop: budget.signal });
      await sandbox.untilAsked(2);
      budget.abort(new Error('the budget is spent'));
      const run = await turn;
      expect(run.ending).toEqual({ ended: 'stopped', message: 'the budget is spent' });
      expect(commandsOf(run)).toEqual(['echo before > mark-file']);
    });

    test('that is canceled rejects with the reason', async () => {
      await using sandbox = await sandboxWith([{ hang: true }]);
      const trial = new AbortController();
      const turn = sandbox.session.turn('Do it.', { ...sandbox.unhurried, signal: trial.signal });
      const rejected = expect(turn).rejects.toThrow('the trial was canceled');
      await sandbox.untilAsked(1);
      trial.abort(new Error('the trial was canceled'));
      await rejected;
    });

    test('that prints what no known version prints is broken, and nobody has failed', async () => {
      await using sandbox = await sandboxWith([]);
      const { path, program } = expected.garbage;
      await sandbox.container.put([{ path, content: program, mode: 0o755 }]);
      const run = await sandbox.session.turn('Do it.', sandbox.unhurried);
      expect(run.ending).toMatchObject({ ended: 'runner-broke', exitCode: 0 });
      expect(run.events).toContainEqual({
        kind: 'note',
        at: expect.any(Number),
        text: 'Segmentation fault?',
      });
    });

    test('that is called as it cannot be ends with an error, prints what it can, and asks its model nothing', async () => {
      await using sandbox = await sandboxWith([], { profile: { args: ['--no-such-argument-at-all'] } });
      const run = await sandbox.session.turn('Do it.', sandbox.unhurried);
      const { ending } = run;
      if (ending.ended === 'exited') expect(ending.exitCode).not.toBe(0);
      else expect(ending.ended).toBeOneOf(['runner-broke', 'agent-failed', 'model-failed']);
      // Some name the argument, some print their help only.
      expect(run.lastOutput).toMatch(/no-such-argument-at-all|--help|--auto/);
      expect(await sandbox.requests()).toEqual([]);
    });

    testIf(runner.reportsCommands && runner.mcp.includes('stdio'))(
      "lets its model call the tools of the profile's servers, which may start slowly",
      async () => {
        // Some CLIs wait only a few seconds if Offsite does not tell them to wait, as it does its own.
        const seconds = runner.cli ? 12 : 0;
        const slowly = ['-c', `sleep ${seconds}; exec node "$@"`, 'sh', toolServer, 'gladly'];
        const server = { command: 'sh', args: slowly, env: { GREETING: 'Good "day"' } };
        await using sandbox = await sandboxWith(
          [{ calls: [{ server: 'greeter', name: 'greet', arguments: { to: 'Ada' } }] }, { text: 'Done.' }],
          { profile: { mcpServers: { greeter: server } } },
        );
        const run = await sandbox.session.turn('Greet.', sandbox.unhurried);
        expect(run.ending).toEqual({ ended: 'exited', exitCode: 0 });
        expect(run.trajectory).toEqual([]);
        if (runner.startsWithoutServers) expect(lackingIn(await sandbox.requests(), 'greeter')).toEqual([]);
        expect(run.events).toContainEqual(
          expect.objectContaining({
            kind: 'tool',
            at: expect.any(Number),
            finishedAt: expect.any(Number),
            name: expect.stringContaining('greet'),
            input: expect.objectContaining({ to: 'Ada' }),
            output: expect.stringMatching(/Good .*day.*, Ada, said gladly/),
            failed: false,
          }),
        );
      },
    );

    testIf(runner.cli && runner.mcp.includes('stdio'))(
      'does not begin without a tool server, or shows it in its first request',
      async () => {
        const server = { command: 'sh', args: ['-c', 'exit 3'], env: {} };
        await using sandbox = await sandboxWith([{ text: 'Done.' }], {
          profile: { mcpServers: { greeter: server } },
        });
        const run = await sandbox.session.turn('Greet.', sandbox.unhurried);
        const requests = await sandbox.requests();
        if (runner.startsWithoutServers) expect(lackingIn(requests, 'greeter')).toEqual(['greeter']);
        else {
          expect(requests).toEqual([]);
          expect(run.ending).toMatchObject({ message: expect.stringContaining('greeter') });
        }
      },
    );

    test.each(
      (['http', 'sse'] as const).filter(
        (transport) => runner.reportsCommands && runner.mcp.includes(transport),
      ),
    )('lets its model call the tools of a server that speaks %s', async (transport) => {
      const port = 8978;
      const url = `http://localhost:${port}/${transport === 'http' ? 'mcp' : 'sse'}`;
      const server = { url, transport, headers: { 'X-Greeting': 'Good day' } } as const;
      await using sandbox = await sandboxWith(
        [{ calls: [{ server: 'greeter', name: 'greet', arguments: { to: 'Ada' } }] }, { text: 'Done.' }],
        { profile: { mcpServers: { greeter: server } } },
      );
      const start = `setsid -f node ${toolServer} gladly ${port} > /dev/null 2>&1 < /dev/null
until (exec 3<> /dev/tcp/127.0.0.1/${port}) 2> /dev/null; do sleep 0.05; done`;
      await sandbox.container.exec({ argv: ['bash', '-c', start], timeoutMs: turnPatience });
      const run = await sandbox.session.turn('Greet.', sandbox.unhurried);
      expect(run.ending).toEqual({ ended: 'exited', exitCode: 0 });
      const greeted = expect.stringContaining('Good day, Ada, said gladly');
      expect(run.events).toContainEqual(expect.objectContaining({ kind: 'tool', output: greeted }));
    });

    testIf(runner.skillsFolder)('tells its model of the skills that are copied for it', async () => {
      await using sandbox = await sandboxWith([{ text: 'Done.' }]);
      const skill = '---\nname: bell-ringing\ndescription: Rings the seventh bell.\n---\nPull the rope.\n';
      await sandbox.container.put([{ path: '/skills/bell-ringing/SKILL.md', content: skill }]);
      const to = runner.skillsFolder ?? '~/';
      await copySkills(sandbox.container, { from: '/skills', to }, AbortSignal.timeout(turnPatience));
      const run = await sandbox.session.turn('Go on.', sandbox.unhurried);
      expect(run.ending).toEqual({ ended: 'exited', exitCode: 0 });
      // Some tell the description too, if it is short enough.
      expect(JSON.stringify(await sandbox.requests()).includes('bell-ringing')).toBe(true);
    });

    testIf(runner.limits.includes('turns'))(
      "stops at the profile's limit of turns, which is its own failure",
      async () => {
        const turns = ['1', '2', '3', '4'].map((number) => ({
          commands: [`echo ${number} > mark-${number}`],
        }));
        await using sandbox = await sandboxWith(turns, { profile: { maxTurns: 2 } });
        const run = await sandbox.session.turn('Go on.', sandbox.unhurried);
        expect(run.ending).toMatchObject({ ended: 'agent-failed', message: expect.stringMatching(/turns/) });
        expect(run.trajectory.length).toBeGreaterThan(0);
        expect(run.trajectory.length).toBeLessThan(4);
      },
    );

    const [, ...otherWires] = runner.wires === 'any' ? [] : runner.wires;
    test.each(otherWires)('speaks %s as well', async (wire) => {
      await using sandbox = await sandboxWith([{ commands: ['echo 1 > mark-wire'] }, { text: 'Done.' }], {
        wire,
      });
      const run = await sandbox.session.turn('Do it.', sandbox.unhurried);
      expect(run).toMatchObject({
        ending: { ended: 'exited', exitCode: 0 },
        finalMessage: 'Done.',
        trajectory: [{ command: 'echo 1 > mark-wire', exitCode: 0 }],
        ...(expected.tellsUsage !== false && { usage: usageOf(2) }),
      });
      await expectToPass(sandbox, runner, wire);
    });
  });
}

/** The server if a trial with these requests finds that it did not start. */
function lackingIn(requests: readonly object[], server: string): readonly string[] {
  const offer = new FirstOffer([server]);
  for (const [startedAt, body] of requests.entries())
    offer.add({ role: 'agent', startedAt }, Buffer.from(JSON.stringify(body)));
  return offer.lacking;
}

/** All that the CLI asked for is what the gateway lets through to a model that runs no tools of its own. */
async function expectToPass(sandbox: RunnerSandbox, { wires }: Runner, wire = wires[0]): Promise<void> {
  if (wires === 'any' || wire === undefined) return;
  const model = { name: 'scripted', config: ModelConfig.parse({ scripted: 'turns.yaml' }) };
  for (const request of await sandbox.requests()) {
    const inPath = wire === 'gemini' ? { model: model.name, streamed: true } : undefined;
    const { json } = readRequestBody(Buffer.from(JSON.stringify(request)), wire as Wire, inPath);
    expect(() => checkMembers(json, wire as Wire, model)).not.toThrow();
  }
}
