import { describe, expect, test } from 'vitest';
import { freshVerify } from '../../src/suite/plan.ts';
import { bench, sharedBench } from './shared-bench.ts';
import { timeouts, validator } from './trial-bench.ts';

sharedBench();

describe.concurrent('a harness', () => {
  test('finds its prompt in a file and in its environment, and the variables of the case', async () => {
    const { trajectory, verdict } = await bench.trial(
      'cat "$OFFSITE_PROMPT_FILE"\necho "$OFFSITE_PROMPT|$animal|$depth|$OFFSITE_WORKSPACE|$PWD"',
      { prompt: 'Feed the {{x}}.\n', variables: { animal: 'cat', depth: [1] }, verify: 'true' },
    );
    expect(verdict).toBe('passed');
    expect(trajectory?.map(({ output }) => output)).toEqual([
      'Feed the {{x}}.\n',
      'Feed the {{x}}.\n|cat|[1]|/workspace|/workspace\n',
    ]);
  });

  test('gets a prompt that is too long for an environment in its file', async () => {
    const prompt = `${'Feed the cat. '.repeat(25_000)}\n`;
    const { trajectory, verdict } = await bench.trial(
      'wc -c < "$OFFSITE_PROMPT_FILE"\nenv | grep -cE "^(OFFSITE_PROMPT|instruction)="',
      { prompt, variables: { instruction: prompt }, verify: 'true' },
    );
    expect(verdict).toBe('passed');
    expect(trajectory?.map(({ output }) => output)).toEqual([`${prompt.length}\n`, '0\n']);
  });

  test('gets no variable of the host, and no network but loopback', async () => {
    process.env.OFFSITE_TEST_SECRET = 'of the host';
    const { trajectory } = await bench.trial('env\ncat /proc/net/dev /proc/net/route', { verify: 'true' });
    const [environment = '', network = ''] = trajectory?.map(({ output }) => output ?? '') ?? [];
    expect(environment).not.toContain('of the host');
    expect(network).toContain('lo:');
    expect(network).not.toContain('eth0:');
    // The heading, and no way out below it.
    expect(
      network
        .match(/^Iface[\s\S]*/m)?.[0]
        .trim()
        .split('\n'),
    ).toHaveLength(1);
  });

  test('is judged by verify and not by its exit code', async () => {
    const verify = 'test "$(cat done)" = yes';
    const lost = await bench.trial('echo yes > done\nexit 7', { verify });
    expect(lost).toMatchObject({ verdict: 'passed', harness: { ended: 'exited', exitCode: 7 } });
    expect(lost.cause).toBeUndefined();
  });

  test('that runs out of time is stopped, graded by what it left, and named as the cause', async () => {
    const result = await bench.trial(
      'echo first > file\nsleep 600\necho second > file',
      { verify: 'grep -q first file' },
      { timeouts: { ...timeouts, harness: 4_000 } },
    );
    expect(result).toMatchObject({
      verdict: 'passed',
      harness: { ended: 'timed-out', afterMs: 4_000 },
      cause: { kind: 'agent', phase: 'harness', message: 'the harness was stopped after 4 s' },
      verifySteps: [{ exitCode: 0 }],
    });
    expect(result.trajectory?.map(({ command, exitCode }) => [command, exitCode])).toEqual([
      ['echo first > file', 0],
      ['sleep 600', undefined],
    ]);
  });

  test('cannot change the workspace any more once grading begins, even from another session', async () => {
    const spoil = '(while :; do echo spoiled > result; done)';
    const result = await bench.trial(
      `setsid bash -c '${spoil}' > /dev/null 2>&1 &\nuntil test -s result; do :; done; echo right > result`,
      { verify: 'echo right > result; sleep 0.3; cat result\ngrep -q right result' },
    );
    expect(result).toMatchObject({ verdict: 'passed', verifySteps: [{ output: 'right\n' }, {}] });
  });

  test('that removes its workspace has failed, with what it removed named', async () => {
    const result = await bench.trial('cd /; rm -rf /workspace', {
      prepare: 'echo 1 > file',
      verify: 'test -f file',
      artifacts: ['**'],
    });
    expect(result).toMatchObject({ verdict: 'failed', filesChanged: ['.'] });
    expect(result.verifySteps).toMatchObject([{ command: 'test -f file', exitCode: 1 }]);
  });

  test('that removes what grading needs has failed; it is not excused as infrastructure', async () => {
    const verifyPlace = { ...freshVerify, in: 'same' as const };
    const withoutBash = await bench.trial('rm /bin/bash', { verify: 'true', verifyPlace });
    expect(withoutBash).toMatchObject({ verdict: 'failed', cause: { kind: 'agent', phase: 'verify' } });
    const asks = `import { validate } from 'offsite/validator'; import assert from 'node:assert/strict';
validate('it', async ({ run }) => assert.equal((await run('node', ['--version'])).exitCode, 0))`;
    const withoutNode = await bench.trial('rm "$(command -v node)"', {
      validator: validator(asks, { runsIn: 'same' }),
    });
    expect(withoutNode).toMatchObject({ verdict: 'failed' });
  });

  test('that removes the shell and leaves a process is graded by what it left, in a sandbox that has one', async () => {
    const leave = 'echo done > left; setsid sleep 600 > /dev/null 2>&1 &\nrm /bin/sh';
    const { verdict, cause } = await bench.trial(leave, { verify: 'grep -q done left' });
    expect(verdict).toBe('passed');
    expect(cause).toBeUndefined();
  });

  test('that prints 3 MB keeps beginning and end of it', async () => {
    const { trajectory, verdict } = await bench.trial(
      'echo begin; head -c 3000000 /dev/zero | tr "\\0" x; echo; echo end',
      { verify: 'true' },
    );
    expect(verdict).toBe('passed');
    const [entry] = trajectory ?? [];
    expect(entry).toMatchObject({ exitCode: 0, outputTruncated: true });
    expect(entry?.output).toMatch(/^begin\nx/);
    expect(entry?.output).toMatch(/x\nend\n$/);
    expect(entry?.output?.length).toBeLessThan(2 * 1024 ** 2);
  });
});
