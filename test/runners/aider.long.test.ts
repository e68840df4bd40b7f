import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aider } from '../../runners/aider/runner.ts';
import { pythonVersions } from '../../runners/versions.ts';
import { checkMembers } from '../../src/gateway/members.ts';
import { readRequestBody } from '../../src/gateway/request-body.ts';
import { harnessPython } from '../../src/harness/python-cli.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { installPatience, openRunnerBench, type RunnerBench, turnPatience } from './runner-bench.ts';

// The conformance suite of the other CLIs needs a model that calls a shell. The model of aider writes edits.

/** An edit as aider asks models for it that it does not know: the whole file. */
const whole = (path: string, content: string) => `I write it.\n\n${path}\n\`\`\`\n${content}\n\`\`\`\n`;

let bench: RunnerBench;
beforeAll(async () => {
  bench = await openRunnerBench(aider);
}, installPatience + 60_000);
afterAll(() => bench?.[Symbol.asyncDispose]());

/** What the sandbox's shell prints. */
async function shell(sandbox: Awaited<ReturnType<RunnerBench['sandbox']>>, script: string): Promise<string> {
  const result = await sandbox.container.exec({ argv: ['sh', '-c', script], timeoutMs: turnPatience });
  return result.stdout.text;
}

describe('aider', { timeout: turnPatience * 3 }, () => {
  test('edits files, runs the tests that it is given, and goes on with the same conversation', async () => {
    await using sandbox = await bench.sandbox(
      [
        { plain: whole('mark-one', 'said') },
        { plain: whole('mark-one', 'said twice') },
        { plain: 'It is still there.' },
      ],
      { profile: { args: ['--auto-test', '--test-cmd', 'grep -q twice mark-one'] } },
    );
    const commit = 'git add -A && git -c user.name=n -c user.email=e commit -qm start';
    // Settings of the work itself do not lead to another model.
    await shell(
      sandbox,
      `git init -q . && echo 'OPENAI_API_KEY=of-the-work' > .env && echo 'OPENAI_API_BASE=http://127.0.0.1:9' >> .env && ${commit}`,
    );
    const first = await sandbox.session.turn('Make mark-one.', sandbox.unhurried);
    expect(first.ending).toEqual({ ended: 'exited', exitCode: 0 });
    expect(first.version).toBe(pythonVersions.aider.version);
    expect(first.finalMessage).toContain('I write it.');
    expect(first.usage).toMatchObject({ inputTokens: 200, outputTokens: 20, cacheReadTokens: 40 });
    expect(first.trajectory).toMatchObject([
      { command: 'grep -q twice mark-one', exitCode: 1 },
      { command: 'grep -q twice mark-one', exitCode: 0 },
    ]);
    const edits = first.events.filter(({ kind }) => kind === 'tool');
    expect(edits).toMatchObject([
      { name: 'edit', input: { path: 'mark-one' }, output: expect.stringContaining('+said'), failed: false },
      { name: 'edit', input: { path: 'mark-one' }, output: expect.stringContaining('-said\n+said twice') },
    ]);

    const second = await sandbox.session.turn('/exit is it there?', sandbox.unhurried);
    expect(second.ending).toEqual({ ended: 'exited', exitCode: 0 });
    expect(second.finalMessage).toBe('It is still there.');
    const requests = await sandbox.requests();
    for (const request of requests) {
      const { json } = readRequestBody(Buffer.from(JSON.stringify(request)), 'openai-chat');
      const model = { name: 'scripted', config: ModelConfig.parse({ scripted: 'turns.yaml' }) };
      expect(() => checkMembers(json, 'openai-chat', model)).not.toThrow();
    }
    const last = JSON.stringify(requests.at(-1));
    expect(last).toContain('Make mark-one.');
    expect(last).toContain('/exit is it there?');
    // The file that it edited is in the conversation again.
    expect(last).toContain('said twice');
    // It adds new files to the index, and commits nothing.
    expect(await shell(sandbox, 'git status --short && git log --oneline | wc -l && cat mark-one')).toBe(
      'AM mark-one\n1\nsaid twice\n',
    );
  });

  test('that is refused by its model has a failed model, asked once, and makes no repository', async () => {
    await using sandbox = await bench.sandbox([
      { plain: whole('mark-one', 'said') },
      { status: 500, message: 'this model answers no more' },
    ]);
    await sandbox.session.turn('Make it.', sandbox.unhurried);
    const run = await sandbox.session.turn('Do more.', sandbox.unhurried);
    expect(run.ending).toMatchObject({
      ended: 'model-failed',
      message: expect.stringContaining('this model answers no more'),
    });
    expect(await sandbox.requests()).toHaveLength(2);
    expect(await shell(sandbox, 'ls -A')).toBe('mark-one\n');
  });

  test('whose time is up keeps what it did, and nothing of it lives on', async () => {
    await using sandbox = await bench.sandbox([{ plain: whole('mark-one', 'said') }], {
      profile: { args: ['--auto-test', '--test-cmd', 'sed -n "1w mark-endless" /dev/urandom'] },
    });
    const turn = sandbox.session.turn('Do it.', sandbox.held);
    await shell(sandbox, 'until [ -e mark-endless ]; do sleep 0.05; done');
    sandbox.expire();
    const run = await turn;
    expect(run.ending).toEqual({ ended: 'timed-out', afterMs: sandbox.held.timeoutMs });
    expect(run.events).toContainEqual(expect.objectContaining({ name: 'edit', input: { path: 'mark-one' } }));
    expect(run.trajectory).toMatchObject([{ command: 'sed -n "1w mark-endless" /dev/urandom' }]);
    expect(run.trajectory[0]?.exitCode).toBeUndefined();
    await sandbox.container.killAll();
    expect(await sandbox.container.processes()).toEqual([]);
  });

  test('that is stopped says why', async () => {
    await using sandbox = await bench.sandbox([{ hang: true }, { plain: 'never' }]);
    const budget = new AbortController();
    const turn = sandbox.session.turn('Do it.', { ...sandbox.unhurried, stop: budget.signal });
    await sandbox.untilAsked(1, 'without tools');
    budget.abort(new Error('the budget is spent'));
    expect((await turn).ending).toEqual({ ended: 'stopped', message: 'the budget is spent' });
  });

  test('that prints what no known version prints is broken, and nobody has failed', async () => {
    await using sandbox = await bench.sandbox([]);
    const program = '#!/bin/sh\necho "Segmentation fault?"\n';
    await sandbox.container.put([{ path: harnessPython, content: program, mode: 0o755 }]);
    const run = await sandbox.session.turn('Do it.', sandbox.unhurried);
    expect(run.ending).toMatchObject({ ended: 'runner-broke', exitCode: 0 });
  });

  test('that is called as it cannot be names the argument, and asks its model nothing', async () => {
    await using sandbox = await bench.sandbox([], { profile: { args: ['--no-such-argument-at-all'] } });
    const run = await sandbox.session.turn('Do it.', sandbox.unhurried);
    expect(run.ending.ended).toBeOneOf(['runner-broke', 'agent-failed']);
    expect(run.lastOutput).toContain('no-such-argument-at-all');
    expect(await sandbox.requests()).toEqual([]);
  });

  test('speaks anthropic-messages as well', async () => {
    await using sandbox = await bench.sandbox([{ plain: whole('mark-wire', '1') }], {
      wire: 'anthropic-messages',
    });
    const run = await sandbox.session.turn('Do it.', sandbox.unhurried);
    expect(run).toMatchObject({
      ending: { ended: 'exited', exitCode: 0 },
      events: expect.arrayContaining([expect.objectContaining({ name: 'edit' })]),
      usage: { inputTokens: 100, outputTokens: 10, cacheReadTokens: 20 },
    });
  });
});
