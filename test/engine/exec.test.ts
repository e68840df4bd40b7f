import { describe, expect, test } from 'vitest';
import { clockWith } from '../validate/validator-bench.ts';
import { dockerOf } from './docker-of.ts';
import { shell, startedContainer, testEngine } from './engine-fixture.ts';
import { container, engine, sharedContainer } from './shared-engine.ts';

sharedContainer({ env: { FROM_SPEC: 'spec', BOTH: 'spec' } });

describe('output', () => {
  test('is exact on both streams, for all byte values', async () => {
    const script =
      'import sys; b = bytes(range(256)); sys.stdout.buffer.write(b * 50); sys.stderr.buffer.write(b)';
    const result = await container.exec({ argv: ['python3', '-c', script], timeoutMs: 60_000 });
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    expect(result.ended).toBe('exited');
    expect(result.stdout.bytes.equals(Buffer.concat(Array.from({ length: 50 }, () => all)))).toBe(true);
    expect(result.stderr.bytes.equals(all)).toBe(true);
  });

  test('shows a character that was written in two halves', async () => {
    const result = await shell(container, "printf '\\342'; sleep 0.05; printf '\\202\\254'");
    expect(result.stdout.text).toBe('€');
  });

  test('of 5 MB is drained, counted and cut in the middle', async () => {
    let seen = 0;
    const result = await container.exec({
      argv: ['sh', '-c', 'echo first; head -c 5242880 /dev/zero; echo last'],
      timeoutMs: 60_000,
      capBytes: 1_000,
      onOutput: (_stream, bytes) => {
        seen += bytes.length;
      },
    });
    expect(result).toMatchObject({ ended: 'exited', exitCode: 0 });
    expect(result.stdout).toMatchObject({ truncated: true, totalBytes: 5_242_880 + 11 });
    expect(seen).toBe(5_242_891);
    expect(result.stdout.text.startsWith('first\n')).toBe(true);
    expect(result.stdout.text.endsWith('last\n')).toBe(true);
    expect(result.stdout.text).toContain('[... 5241891 bytes cut ...]');
  });
});

describe('the end of a command', () => {
  test('has its exit code', async () => {
    for (const code of [0, 1, 126, 127, 255]) {
      expect(await shell(container, `exit ${code}`)).toMatchObject({ ended: 'exited', exitCode: code });
    }
    expect(await shell(container, 'kill -9 $$')).toMatchObject({ ended: 'exited', exitCode: 137 });
  });

  test('is "not started" when the program, folder or user does not exist', async () => {
    for (const request of [
      { argv: ['no-such-program'] },
      { argv: ['true'], cwd: '/etc/passwd' },
      { argv: ['true'], user: 'nobody-known' },
      { argv: ['/etc/passwd'] },
    ]) {
      const result = await container.exec({ timeoutMs: 60_000, ...request });
      expect(result.ended, JSON.stringify(request)).toBe('not-started');
      expect(result).toHaveProperty('message', expect.stringMatching(/\w{4}/));
      expect(result.stdout.totalBytes).toBe(0);
    }
  });

  test.each([
    [
      'many variables',
      { env: Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`V${at}`, 'x'.repeat(20_000)])) },
    ],
    ['an argument', { argv: ['sh', '-c', 'exit 3', 'x'.repeat(140_000)] }],
  ])(
    'is "not started", with the words of the kernel, when %s cannot be given to a program',
    async (_, change) => {
      const request = { argv: ['sh', '-c', 'exit 3'], timeoutMs: 60_000, ...change };
      const result = await container.exec(request);
      expect(result).toMatchObject({
        ended: 'not-started',
        message: expect.stringMatching(/argument list too long/i),
      });
    },
  );

  test('has its exit code although its environment is nearly as long as the kernel takes', async () => {
    const env = { ONE: 'x'.repeat(100_000), TWO: 'y'.repeat(100_000) };
    const said = 'exec /usr/bin/true: argument list too long';
    const result = await container.exec({
      argv: ['sh', '-c', `echo ${said}; exit 1`],
      env,
      timeoutMs: 60_000,
    });
    expect(result).toMatchObject({ ended: 'exited', exitCode: 1, stdout: { text: `${said}\n` } });
  });

  test('waits for a program that closed its outputs and runs on', async () => {
    const result = await shell(container, 'echo said; exec >&- 2>&-; sleep 0.3; exit 5');
    expect(result).toMatchObject({ ended: 'exited', exitCode: 5 });
    expect(result.stdout.text).toBe('said\n');
  });

  test('comes with a child left in the background that holds the outputs', async () => {
    const result = await shell(container, 'sleep 600 & echo started');
    expect(result).toMatchObject({ ended: 'exited', exitCode: 0 });
    expect(result.stdout.text).toBe('started\n');
    await container.killAll();
  });
});

test('an error of our own reader is told as it is, and not as a failure of the engine', async () => {
  const ours = new RangeError('a defect');
  const command = container.exec({
    argv: ['echo', 'text'],
    timeoutMs: 60_000,
    onOutput: () => {
      throw ours;
    },
  });
  await expect(command).rejects.toBe(ours);
});

describe('a deadline', () => {
  test('ends the command, keeps its output, and kills everything, even what left its group', async () => {
    const clock = clockWith(54_321);
    await using own = await testEngine({ clock });
    await using sandbox = await startedContainer(own);
    const result = await sandbox.exec({
      argv: [
        'sh',
        '-c',
        'trap "" TERM INT; setsid -f sh -c "trap \\"\\" TERM; sleep 100"; echo before; sleep 100',
      ],
      timeoutMs: 54_321,
      onOutput: () => clock.pass(),
    });
    expect(result.ended).toBe('timed-out');
    expect(result).not.toHaveProperty('exitCode');
    expect(result.stdout.text).toBe('before\n');
    expect(await sandbox.processes()).toEqual([]);
  });

  test("spares another command that runs beside it, and ends the command's own daemons", async () => {
    const clock = clockWith(54_321);
    await using own = await testEngine({ clock });
    await using sandbox = await startedContainer(own);
    const beside = shell(sandbox, 'until [ -e /tmp/go ]; do sleep 0.05; done; echo done');
    const late = await sandbox.exec({
      argv: ['sh', '-c', 'setsid -f sleep 101; echo up; sleep 100'],
      user: '1234',
      timeoutMs: 54_321,
      onOutput: () => clock.pass(),
    });
    expect(late.ended).toBe('timed-out');
    const running = (await sandbox.processes()).map(({ command }) => command);
    expect(running.filter((command) => /sleep 10[01]/.test(command))).toEqual([]);
    await sandbox.put([{ path: '/tmp/go', content: '' }]);
    expect((await beside).stdout.text).toBe('done\n');
  });

  test('is also met by a program that closed its outputs', async () => {
    const result = await shell(container, 'exec >&- 2>&-; sleep 100', { timeoutMs: 400 });
    expect(result.ended).toBe('timed-out');
    expect(await container.processes()).toEqual([]);
  });

  test('an abort and a timeout have different results', async () => {
    const abort = new AbortController();
    const result = await container.exec({
      argv: ['sh', '-c', 'echo up; sleep 100'],
      timeoutMs: 60_000,
      signal: abort.signal,
      onOutput: () => abort.abort(),
    });
    expect(result.ended).toBe('canceled');
    expect(await container.processes()).toEqual([]);
    const never = await container.exec({ argv: ['true'], timeoutMs: 1_000, signal: AbortSignal.abort() });
    expect(never.ended).toBe('canceled');
  });
});

describe('what a command is given', () => {
  test('stdin arrives whole and ends', async () => {
    const stdin = Buffer.alloc(3_000_000, 'abc\n');
    const result = await container.exec({ argv: ['wc', '-c'], stdin, timeoutMs: 60_000 });
    expect(result.stdout.text.trim()).toBe('3000000');
    expect((await container.exec({ argv: ['cat'], timeoutMs: 60_000 })).stdout.text).toBe('');
  });

  test.each([1, 1000, 100_000])('all output is there if %d bytes of stdin are not read', async (bytes) => {
    const script = 'echo out; echo err >&2; exit 3';
    const run = () =>
      container.exec({ argv: ['sh', '-c', script], stdin: 'x'.repeat(bytes), timeoutMs: 60_000 });
    for (const result of await Promise.all(Array.from({ length: 8 }, run)))
      expect(result).toMatchObject({
        exitCode: 3,
        stdout: { text: 'out\n' },
        stderr: { text: 'err\n' },
      });
  });

  test('a command with stdin that is killed prints nothing', async () => {
    const stdin = 'given';
    const killed = await container.exec({ argv: ['sh', '-c', 'kill -9 $$'], stdin, timeoutMs: 60_000 });
    expect(killed).toMatchObject({ exitCode: 137, stdout: { text: '' }, stderr: { text: '' } });
    const ended = await container.exec({ argv: ['sh', '-c', 'kill $$'], stdin, timeoutMs: 60_000 });
    expect(ended).toMatchObject({ exitCode: 143, stderr: { text: '' } });
    const script = 'trap : TERM; kill 0; echo here; exit 3';
    const trapped = await container.exec({ argv: ['sh', '-c', script], stdin, timeoutMs: 60_000 });
    expect(trapped).toMatchObject({ exitCode: 3, stdout: { text: 'here\n' }, stderr: { text: '' } });
  });

  test('stdin that nobody reads does no harm', async () => {
    const result = await container.exec({
      argv: ['sh', '-c', 'exec <&-; echo fine'],
      stdin: Buffer.alloc(5_000_000),
      timeoutMs: 60_000,
    });
    expect(result).toMatchObject({ ended: 'exited', exitCode: 0 });
    expect(result.stdout.text).toBe('fine\n');
  });

  test("environment: the request's names win over the container's, and values are exact", async () => {
    const env = { BOTH: 'request', ODD: 'a=b "c" $HOME\nline' };
    const script = 'printf "%s|%s|%s" "$FROM_SPEC" "$BOTH" "$ODD"';
    const result = await container.exec({ argv: ['sh', '-c', script], env, timeoutMs: 60_000 });
    expect(result.stdout.text).toBe('spec|request|a=b "c" $HOME\nline');
  });

  test('environment is not in what the engine tells about the container or its commands', async () => {
    const secret = 'sk-do-not-tell';
    const running = container.exec({
      argv: ['sh', '-c', 'echo up; sleep 5'],
      env: { KEY: secret },
      timeoutMs: 500,
    });
    const about = await dockerOf(engine).getContainer(container.id).inspect();
    const exec = about.ExecIDs?.[0];
    const aboutExec = exec === undefined ? {} : await dockerOf(engine).getExec(exec).inspect();
    expect(JSON.stringify([about, aboutExec, await container.processes()])).not.toContain(secret);
    expect(JSON.stringify(about)).not.toContain('FROM_SPEC');
    await running;
  });

  test('user and folder', async () => {
    const result = await container.exec({
      argv: ['sh', '-c', 'id -u; pwd'],
      user: '1234',
      cwd: '/tmp',
      timeoutMs: 60_000,
    });
    expect(result.stdout.text).toBe('1234\n/tmp\n');
  });
});
