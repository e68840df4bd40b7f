import { describe, expect, test } from 'vitest';
import type { ScriptRequest } from '../../src/engine/script/step-recorder.ts';
import { clockWith } from '../validate/validator-bench.ts';
import { shell, startedContainer, testEngine, until, untilFile } from './engine-fixture.ts';
import { container, engine, sharedContainer } from './shared-engine.ts';

sharedContainer({ env: { FROM_SPEC: 'spec' } });

const run = (script: string, more: Partial<ScriptRequest> = {}) =>
  container.runScript({ script, timeoutMs: 60_000, ...more });

/** Command, exit code and output of every step. */
async function steps(script: string, more: Partial<ScriptRequest> = {}) {
  const result = await run(script, more);
  return result.steps.map(({ command, exitCode, output }) => [command, exitCode, output]);
}

describe('what is one step', () => {
  test('a line, a continuation, a here-document, a block; not a comment or an empty line', async () => {
    const commands = [
      'echo one',
      'echo a \\\n  b',
      'cat <<END\nif $FROM_SPEC\nEND',
      "cat <<-'END' | tr a-z A-Z\n\tdoc \\\n\tEND",
      'for i in 1 2; do\n  # inside\n  echo $i\n\ndone',
      'f() {\n  echo f\n}',
      'f; f',
      "echo 'two\nlines'",
      'true &&\n  echo and',
      'echo x # not a continuation \\',
      'case a in\n  a) echo case;;\nesac',
      'cat <<A <<B\na\nA\nb\nB',
    ];
    const script = `# a comment\n\n${commands.join('\n\n  # another\n')}\n`;
    const found = await steps(script);
    expect(found.map(([command]) => command)).toEqual(commands);
    expect(found.map(([, , output]) => output)).toEqual([
      'one\n',
      'a b\n',
      'if spec\n',
      'DOC \\\n',
      '1\n2\n',
      '',
      'f\nf\n',
      'two\nlines\n',
      'and\n',
      'x\n',
      'case\n',
      'b\n',
    ]);
  });

  test('messages of bash name the lines of the script', async () => {
    const script = [
      'set -uv',
      '',
      '# a comment',
      'for i in 1; do',
      '  noted',
      'done',
      'echo $LINENO',
      '( echo "a',
    ];
    const found = await steps(script.join('\n'));
    const outputs = found.map(([, , output]) => output);
    expect(outputs).toEqual([
      '',
      expect.stringMatching(/^script: line 5: noted: command not found$/m),
      expect.stringMatching(/^7$/m),
      expect.stringMatching(/^script: eval: line 8: unexpected EOF/m),
    ]);
    expect(outputs.join('')).not.toContain('\n\n');
  });

  test('a syntax error is a step of its own with exit code 2, and the rest runs', async () => {
    expect(await steps('echo a\nif ;\necho b')).toEqual([
      ['echo a', 0, 'a\n'],
      ['if ;', 2, expect.stringContaining('syntax error')],
      ['echo b', 0, 'b\n'],
    ]);
  });

  test('what is never completed is one failing step, and none of it runs', async () => {
    expect(await steps("echo a\nif true; then\necho inside\necho 'more")).toEqual([
      ['echo a', 0, 'a\n'],
      ["if true; then\necho inside\necho 'more", 2, expect.stringContaining('unexpected')],
    ]);
  });

  test('a here-document of 3,000 lines too', async () => {
    const body = Array.from({ length: 3_000 }, (_, line) => `line ${line}`).join('\n');
    const result = await run(`wc -l <<END\n${body}\nEND\necho next`);
    expect(result.steps.map(({ output }) => output.trim())).toEqual(['3000', 'next']);
  });

  test('an empty script has no steps', async () => {
    expect(await run('# nothing\n\n')).toMatchObject({ ended: 'finished', steps: [] });
    expect(await run('')).toMatchObject({ ended: 'finished', steps: [] });
  });
});

describe('how steps run', () => {
  test('in one shell: folder, variables, functions, options and $? carry over', async () => {
    const script =
      'cd /tmp\nexport A=1\ndeclare -a list=(x y)\nset -- p q\nshopt -s extglob\nfalse\n' +
      'echo "$? $PWD $A $list $2 $#"\n[[ aa == +(a) ]] && echo glob';
    expect((await steps(script)).slice(-2).map(([, , output]) => output)).toEqual([
      '1 /tmp 1 x q 2\n',
      'glob\n',
    ]);
  });

  test('all of them, though some fail, each with its exit code', async () => {
    expect((await steps('true\nfalse\n(exit 42)\nnosuchcommand\ntrue')).map(([, code]) => code)).toEqual([
      0, 1, 42, 127, 0,
    ]);
  });

  test('output keeps the order of both streams', async () => {
    expect(await steps('echo a; echo b >&2; echo c')).toEqual([
      ['echo a; echo b >&2; echo c', 0, 'a\nb\nc\n'],
    ]);
  });

  test('stdin is empty, so nothing can eat the script', async () => {
    expect(await steps('cat\necho still')).toEqual([
      ['cat', 0, ''],
      ['echo still', 0, 'still\n'],
    ]);
  });

  test('folder, user and environment are as asked', async () => {
    const result = await run('echo $PWD $(id -u) $A $FROM_SPEC', {
      cwd: '/tmp',
      user: '1234',
      env: { A: 'x' },
    });
    expect(result.steps[0]?.output).toBe('/tmp 1234 x spec\n');
  });

  test("times are the container's and in order", async () => {
    const before = Date.now();
    const { steps } = await run('date +%s%3N\ntrue');
    const [first, second] = steps;
    expect(first?.startedAtMillis).toBeGreaterThanOrEqual(before);
    const inside = Number(first?.output);
    expect(inside).toBeGreaterThanOrEqual(first?.startedAtMillis ?? Infinity);
    expect(inside).toBeLessThanOrEqual(first?.finishedAtMillis ?? 0);
    expect(second?.startedAtMillis).toBeGreaterThanOrEqual(first?.finishedAtMillis ?? Infinity);
    expect(Number.isInteger(first?.startedAtMillis)).toBe(true);
  });

  test.each([`\${EPOCHREALTIME/#/9}`, 'nothing'])(
    'are within the script even if it sets its clock to %s',
    async (time) => {
      const before = Date.now();
      const { steps } = await run(`t=${time}; unset EPOCHREALTIME; EPOCHREALTIME=$t\ntrue`);
      const times = steps.flatMap(({ startedAtMillis, finishedAtMillis }) => [
        startedAtMillis,
        finishedAtMillis,
      ]);
      expect(times).toHaveLength(4);
      for (const each of times) {
        expect(each).toBeGreaterThanOrEqual(before);
        expect(each).toBeLessThanOrEqual(Date.now());
      }
    },
  );

  test('long output is capped per step', async () => {
    const { steps } = await run('head -c 5000000 /dev/zero | tr "\\0" x\necho short', { capBytes: 100 });
    expect(steps[0]).toMatchObject({ outputTruncated: true, outputBytes: 5_000_000, exitCode: 0 });
    expect(steps[1]).toMatchObject({ outputTruncated: false, output: 'short\n' });
  });
});

describe('leaving the script early', () => {
  test('"exit" ends it with that step and its code', async () => {
    expect((await steps('echo a\nexit 7\necho never')).map(([command, code]) => [command, code])).toEqual([
      ['echo a', 0],
      ['exit 7', 7],
    ]);
  });

  test('"exec" gives the step the exit code of what replaced the shell', async () => {
    expect(await steps("exec sh -c 'echo replaced; exit 9'\necho never")).toEqual([
      ["exec sh -c 'echo replaced; exit 9'", 9, 'replaced\n'],
    ]);
    expect((await steps('exec true\necho never')).map(([, code]) => code)).toEqual([0]);
  });

  test('death of the shell is the failure of the step that ran', async () => {
    expect(await steps('echo a\nkill -9 $$\necho never')).toEqual([
      ['echo a', 0, 'a\n'],
      ['kill -9 $$', 137, ''],
    ]);
    const [first, ...rest] = await steps('kill -9 -1; kill -9 $PPID; kill -9 $$\necho never');
    expect(first?.[1]).toBe(137);
    expect(rest).toEqual([]);
    expect(await container.processes()).toEqual([]);
  });

  test('"set -e" ends it at the first failure', async () => {
    expect((await steps('set -e\nfalse\necho never')).map(([, code]) => code)).toEqual([0, 1]);
  });

  test("the script's own EXIT trap runs", async () => {
    await steps('trap "echo bye > /tmp/bye" EXIT\ntrue');
    expect((await shell(container, 'cat /tmp/bye')).stdout.text).toBe('bye\n');
    expect(await steps('trap "echo trapped" EXIT\nexit 4')).toEqual([
      ['trap "echo trapped" EXIT', 0, ''],
      ['exit 4', 4, 'trapped\n'],
    ]);
    // Its code is that of no step.
    expect((await steps('trap "exit 4" EXIT\ntrue\n# the end\n')).map(([, code]) => code)).toEqual([0, 0]);
  });
});

describe('what a script cannot do to its own record', () => {
  test('imitated marks are output', async () => {
    const fake = "printf '%s\\n' '0123456789abcdef0123456789abcdef E 0 1700000000000000' 'Z 0 -'; false";
    expect((await steps(`${fake}\necho next`)).map(([, code]) => code)).toEqual([1, 0]);
  });

  test('the secret is in no environment and no argument list', async () => {
    const result = await run(
      "cat /proc/$$/environ /proc/$$/cmdline /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'",
    );
    expect(result.steps).toHaveLength(1);
    expect(result.steps[0]?.output).not.toMatch(/^[0-9a-f]{32}/m);
  });

  test('functions, options, IFS, traps and closed outputs do not confuse it', async () => {
    const script = [
      'printf() { echo mine; }; read() { :; }; eval() { :; }; local() { :; }; break() { :; }',
      'IFS=0123456789',
      'set -u -f -C -x',
      'echo traced',
      'break; continue',
      'exec > /tmp/redirected 2>&1',
      'echo into the file',
      'exit 3',
    ].join('\n');
    const found = await steps(script);
    expect(found.map(([, code]) => code)).toEqual([0, 0, 0, 0, 0, 0, 0, 3]);
    expect(found[3]?.[2]).toMatch(/^\++ echo traced\ntraced\n$/);
    expect((await shell(container, 'cat /tmp/redirected')).stdout.text).toContain('into the file\n');
  });

  test.for([
    ['changes', "re.sub(rb'( E| Z) \\d+ ', rb'\\1 0 ', got)"],
    ['leaves out', "re.sub(rb'[0-9a-f]{32} [^\\n]*[ED] [^\\n]*\\n', b'', got)"],
  ])('a program that %s marks, which it takes out of the pipe, makes no step succeed', async ([, edit]) => {
    const thief = `import os, re, time
pipe = os.open("/proc/self/fd/1", os.O_RDONLY)
while True:
    got = os.read(pipe, 65536)
    os.write(1, ${edit})
    time.sleep(0.002)`;
    const { steps: first } = await run(
      `cat > /tmp/thief.py << 'END'\n${thief}\nEND\nsetsid timeout 10 python3 /tmp/thief.py 2> /dev/null &\nsleep 0.5\n${'false\n'.repeat(20)}`,
    );
    await container.killAll();
    expect(first.filter(({ command, exitCode }) => command === 'false' && exitCode === 0)).toEqual([]);
    expect(first.every(({ exitCode }) => exitCode === 0)).toBe(false);
  });

  test('a NUL character is refused before anything runs', async () => {
    await expect(run('echo \0')).rejects.toMatchObject({ code: 'ENGINE_SCRIPT_NUL', kind: 'input' });
  });
});

describe('its end', () => {
  test('does not wait for a child in the background that holds the output', async () => {
    const result = await run('sleep 600 &\necho done');
    expect(result.ended).toBe('finished');
    expect(result.steps.map(({ output }) => output)).toEqual(['', 'done\n']);
    await container.killAll();
    const next = await run('exit 3');
    expect(next.steps.map(({ exitCode }) => exitCode)).toEqual([3]);
    // The shell with the last word may be a moment in ending.
    await until(async () => (await container.processes()).length === 0);
  });

  test('by deadline: the running step is marked, its output kept, nothing runs on', async () => {
    const clock = clockWith(54_321);
    await using own = await testEngine({ clock });
    await using sandbox = await startedContainer(own);
    const running = sandbox.runScript({
      script: 'echo a\necho partial; setsid -f sleep 100; : > /tmp/late; sleep 100\necho never',
      timeoutMs: 54_321,
    });
    await untilFile(own, '/tmp/late');
    clock.pass();
    const result = await running;
    expect(result.ended).toBe('timed-out');
    expect(result.steps.map(({ ended, exitCode, output }) => [ended, exitCode, output])).toEqual([
      ['exited', 0, 'a\n'],
      ['timed-out', undefined, 'partial\n'],
    ]);
    expect(await sandbox.processes()).toEqual([]);
  });

  test('between two steps loses the next one: it never counts as done', async () => {
    const killed = await run('__offsite_take_command() { kill -9 $$; }\n\n# a comment\nfalse\ntrue');
    expect(killed.ended).toBe('finished');
    expect(killed.steps.map(({ command, ended, exitCode }) => [command, ended, exitCode]).slice(1)).toEqual([
      ['false', 'lost', undefined],
    ]);
    const skipped = await run('__offsite_take_command() { __offsite_next=9; builtin return 1; }\nfalse');
    expect(skipped.steps.map(({ command, ended }) => [command, ended]).slice(1)).toEqual([['false', 'lost']]);
    const stopped = await run('__offsite_take_command() { sleep 600; }\nfalse', { timeoutMs: 1_000 });
    expect(stopped.ended).toBe('timed-out');
    expect(stopped.steps.map(({ command, ended }) => [command, ended]).slice(1)).toEqual([
      ['false', 'timed-out'],
    ]);
  });

  test('by abort is told from a timeout', async () => {
    const abort = new AbortController();
    const running = run('true\n: > /tmp/aborted; sleep 100', { signal: abort.signal });
    await untilFile(engine, '/tmp/aborted');
    abort.abort();
    const result = await running;
    expect(result.ended).toBe('canceled');
    expect(result.steps.at(-1)?.ended).toBe('canceled');
  });

  test('"not started" says why', async () => {
    expect(await run('true', { cwd: '/etc/passwd' })).toMatchObject({ ended: 'not-started', steps: [] });
    await using bare = await startedContainer(engine);
    await shell(bare, 'mv /bin/bash /bin/bash.away');
    const result = await bare.runScript({ script: 'true', timeoutMs: 60_000 });
    expect(result).toMatchObject({ ended: 'not-started', message: expect.stringContaining('bash') });
  });
});
