import { describe, expect, test } from 'vitest';
import { scriptedModels } from '../trial/scripted-models.ts';
import { bench, sharedBench } from '../trial/shared-bench.ts';
import { timeouts, validator } from '../trial/trial-bench.ts';

/** Agents that leave work which, when a validator runs it, tries to be graded as what it is not. */

const models = scriptedModels({
  spender: 'turns:\n  - run: "true"\n  - run: "true"\n  - text: done\n',
  judge: `turns: [{ text: '{"reason": "poor", "score": 0.1}' }]\n`,
  prose: 'turns: [{ text: It is quite good., repeat: true }]\n',
  refusing: 'turns: [{ trouble: { error: { status: 403, message: no such luck } }, repeat: true }]\n',
});
sharedBench({ models, budgets: { trial: { requests: 2 }, batch: undefined } });

const work = (script: string) => `cat > work << 'END'\n#!/bin/bash\n${script}\nEND\nchmod +x work`;
const module = (body: string) =>
  `import { validate } from 'offsite/validator'; import assert from 'node:assert/strict'; import fs from 'node:fs';\n${body}`;

/** Runs the work, and then compares what it printed with what is expected, which lies beside the program. */
const comparing = (run: string, check = 'diff "$here/said" "$here/expected"') =>
  validator(
    `#!/bin/bash
here=$(dirname "$0")
said=$(${run} 2> /dev/null)
${check.replace('"$here/said"', '<(echo "$said")')}`,
    {
      files: [
        { path: 'expected', content: 'forty-two\n' },
        { path: 'check.py', content: 'import json, sys\nsys.exit(sys.stdin.read() != "forty-two\\n")\n' },
      ],
    },
  );
const byPython = 'echo "$said" | python3 "$here/check.py"';

const attacks: [string, string, string | undefined][] = [
  ['replaces programs of the system', 'ln -sf /bin/true /usr/bin/diff; echo no', undefined],
  [
    'plants startup files of Python in every home there is, and modules beside itself',
    `for home in "$HOME" /root /tmp /offsite-validators/*/.home $(sed -z -n 's/^HOME=//p' /proc/$PPID/environ | tr '\\0' '\\n'); do
  mkdir -p "$home/.local/lib/python3.11/site-packages"
  echo 'import os; os._exit(0)' > "$home/.local/lib/python3.11/site-packages/usercustomize.py"
done
echo 'import os; os._exit(0)' > json.py; cp json.py sitecustomize.py; echo no`,
    byPython,
  ],
  [
    'writes the loader’s settings',
    '{ echo /none > /etc/ld.so.preload; } && rm /etc/ld.so.preload && echo forty-two',
    undefined,
  ],
];

describe.concurrent('a program validator is not passed by work that', () => {
  for (const [how, run] of [
    ['run as the work', 'offsite-run ./work'],
    ['run by the program itself', './work'],
  ] as const) {
    test.each(attacks)(`%s, ${how}`, async (_, script, check) => {
      const result = await bench.trial(work(script), { validator: comparing(run, check) });
      expect(result).toMatchObject({
        verdict: 'failed',
        validations: [{ kind: 'program', status: 'failed' }],
      });
    });
  }

  test('reads what is expected of it, the validator’s environment or its memory, or kills it', async () => {
    const script = `cat $(tr '\\0' '\\n' < /proc/$PPID/cmdline | grep expected)
for pid in /proc/[0-9]*; do
  [ "$pid" = "/proc/$$" ] && continue
  for word in $(tr '\\0' ' ' < $pid/cmdline 2> /dev/null); do
    case $word in */validator) cat "$(dirname "$word")/expected"; ls "$(dirname "$word")" ;; esac
  done
  cat $pid/environ | tr '\\0' '\\n' | grep OFFSITE_CALLS
  kill -STOP "\${pid#/proc/}"; kill -9 "\${pid#/proc/}"
done 2> /dev/null
find / -name expected -exec cat {} + 2> /dev/null`;
    const result = await bench.trial(work(script), { validator: comparing('offsite-run ./work') });
    expect(result).toMatchObject({ verdict: 'failed', validations: [{ exitCode: 1 }] });
    expect(result.validations?.[0]?.output?.text).toBe('1c1\n< \n---\n> forty-two\n');
  });

  test('prints a test report, to its own output and to whatever output of others it can open', async () => {
    const script = `report() { printf 'TAP version 13\\nok 1 - the work\\n1..1\\n'; }
report
for pid in /proc/[0-9]*; do report > $pid/fd/1; done 2> /dev/null`;
    const source = `#!/bin/bash
offsite-run ./work
if offsite-run grep -q right result; then echo 'ok 1 - the work'; else echo 'not ok 1 - the work'; fi
echo 1..1`;
    const result = await bench.trial(`echo wrong > result\n${work(script)}`, {
      validator: validator(source, { manifest: [{ index: 0, name: 'the work' }] }),
    });
    expect(result).toMatchObject({
      verdict: 'failed',
      validations: [{ name: 'the work', status: 'failed' }],
    });
  });

  test('leaves a process that corrects the result once it is looked at', async () => {
    const later = 'until [ -e /tmp/looking ]; do sleep 0.05; done; echo right > result';
    const script = `setsid env -i bash -c '${later}' > /dev/null 2>&1 < /dev/null &
echo wrong > result`;
    const source = `#!/bin/bash
offsite-run ./work
touch /tmp/looking; sleep 1; test "$(cat result)" = right`;
    const result = await bench.trial(work(script), { validator: validator(source) });
    expect(result).toMatchObject({ verdict: 'failed', validations: [{ exitCode: 1 }] });
  });
});

test.concurrent('work too large to be passed on by offsite-run fails that call, and so the trial', async () => {
  const source = `#!/bin/bash
offsite-run wc -c < work 2> "$TMPDIR/complaints"; code=$?
cat "$TMPDIR/complaints"; echo "it ended with $code"; exit $code`;
  const result = await bench.trial('truncate -s 70M work', { validator: validator(source) });
  expect(result).toMatchObject({ verdict: 'failed', validations: [{ status: 'failed', exitCode: 125 }] });
  expect(result.validations?.[0]?.output?.text).toContain('a call may send at most 67108864 bytes');
});

test.concurrent('a program validator passes honest work, with its input, arguments, exit code and both outputs', async () => {
  const script = 'read -r line; echo "$line $1 $(id -u)"; echo oops >&2; exit 3';
  const source = `#!/bin/bash
said=$(echo given | offsite-run ./work 'an argument' 2> "$TMPDIR/complaints"); code=$?
[ "$said $code $(cat "$TMPDIR/complaints") $(id -u)" = 'given an argument 65534 3 oops 64201' ] || { echo "$said $code"; exit 1; }
offsite-run no-such-program; [ $? = 127 ] && test -r work -a ! -w /usr/bin -a ! -w "$0" -a ! -w "$HOME"`;
  const result = await bench.trial(work(script), { validator: validator(source) });
  expect(result).toMatchObject({ verdict: 'passed' });
});

describe.concurrent('a module validator', () => {
  test('runs as a user that may write neither the system nor itself', async () => {
    const source = module(`validate('cannot', async ({ run }) => {
      for (const path of ['/usr/bin/diff', '/etc/passwd', import.meta.filename, process.env.HOME + '/x'])
        assert.throws(() => fs.writeFileSync(path, ''), /EACCES|EROFS/);
      fs.writeFileSync(process.env.TMPDIR + '/x', '');
      const { stdout } = await run('sh', ['-c', 'cp /bin/true /usr/bin/diff; id -u']);
      assert.equal(stdout, '65534\\n');
      return process.getuid();
    });`);
    const result = await bench.trial('true', { validator: validator(source) });
    expect(result).toMatchObject({ verdict: 'passed', validations: [{ output: { text: '64201' } }] });
  });

  test('has nothing of the work running, neither after run() nor in the next validation', async () => {
    const loop = `setsid env -i bash -c 'while :; do rm -f result; echo right > result; done' > /dev/null 2>&1 < /dev/null &`;
    const source = module(`
      const look = async () => {
        fs.rmSync('result', { force: true });
        fs.writeFileSync('result', 'wrong');
        await new Promise((done) => setTimeout(done, 300));
        assert.equal(fs.readFileSync('result', 'utf8'), 'right\\n');
      };
      validate('after run', async ({ run }) => { await run('./work'); await look(); });
      validate('not awaited', ({ run }) => { run('sh', ['-c', './work; sleep 60']); return new Promise((done) => setTimeout(done, 500)); });
      validate('in the next', look);`);
    const result = await bench.trial(work(loop), { validator: validator(source) });
    expect(result.validations?.map(({ name, status }) => [name, status])).toEqual([
      ['after run', 'failed'],
      ['not awaited', 'passed'],
      ['in the next', 'failed'],
    ]);
  });

  test('is ended with a verdict by work that clears its environment and outlives its time', async () => {
    const source = module(`validate('slow', async ({ run }) => {
      const { exitCode } = await run('./work', [], { timeout: 500 });
      assert.equal(exitCode, 0);
    });`);
    const result = await bench.trial(work('exec env -i sleep 300'), { validator: validator(source) });
    expect(result).toMatchObject({ verdict: 'failed', validations: [{ name: 'slow', status: 'failed' }] });
  });

  test('comes to its verdict although the work takes all the time there is', async () => {
    const program = `#!/bin/bash\noffsite-run ./work; test $? = 0`;
    const source = module(`validate('ends', async ({ run }) => {
      assert.equal((await run('./work', [], { timeout: 1e9 })).exitCode, 0);
    });`);
    const sandbox = { timeouts: { ...timeouts, validator: 20_000 } };
    for (const it of [program, source]) {
      const result = await bench.trial(work('sleep 1000'), { validator: validator(it) }, sandbox);
      expect(result).toMatchObject({ verdict: 'failed', validations: [{ status: 'failed' }] });
    }
  });

  test('comes to its verdict although the work leaves no room for another process', async () => {
    const source = module(`validate('ends', async ({ run }) => {
      assert.equal((await run('./work', [], { timeout: 3000 })).exitCode, 0);
    });`);
    const bomb = 'bomb() { bomb | bomb & }; bomb; while :; do sleep 100 & done 2> /dev/null';
    const result = await bench.trial(work(bomb), { validator: validator(source) }, { pids: 100 });
    expect(result).toMatchObject({ verdict: 'failed', validations: [{ status: 'failed' }] });
  });

  test('is out of reach in a sandbox without root too', async () => {
    const script = `cat /offsite-validators/*/expected "$1"; mv /offsite-validators /gone; cat /proc/$PPID/environ
for pid in /proc/[0-9]*; do [ $pid = /proc/$$ ] || [ $pid = /proc/1 ] || { cat $pid/environ; kill -9 \${pid#/proc/}; } ; done; id -u`;
    const source = module(`validate('apart', async ({ run }) => {
      const { stdout } = await run('bash', ['work', import.meta.dirname + '/../' + import.meta.dirname.split('/').pop() + '/expected']);
      return [process.getuid(), stdout];
    });`);
    const result = await bench.trial(
      work(script),
      { validator: validator(source, { files: [{ path: 'expected', content: 'secret' }] }) },
      { security: 'strict', user: '1000' },
    );
    expect(JSON.parse(result.validations?.[0]?.output?.text ?? 'null')).toEqual([64_201, '1000\n']);
  });

  test('in the agent’s sandbox imports nothing, and is run by nothing, that the agent put in its way', async () => {
    const run = `for at in / /offsite /offsite/validators /offsite-validators /workspace; do
  mkdir -p $at/node_modules/expected
  echo 'export const expected = "wrong";' > $at/node_modules/expected/index.mjs
  echo '{"name": "expected", "exports": "./index.mjs"}' > $at/node_modules/expected/package.json
done
printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/node; cp /lib/x86_64-linux-gnu/libm.so.6 /evil.so; echo /evil.so > /etc/ld.so.preload
echo wrong > result; echo installed > /opt/installed`;
    const prepare = `mkdir -p /node_modules/expected
echo 'export const expected = "right";' > /node_modules/expected/index.mjs
echo '{"name": "expected", "exports": "./index.mjs"}' > /node_modules/expected/package.json`;
    const source = module(`import { expected } from 'expected';
validate('the result', async ({ read, files, run }) => {
  assert.equal(await read('/opt/installed'), 'installed\\n');
  assert.ok((await files('result')).length === 1);
  assert.equal((await read('result')).trim(), expected);
});`);
    const result = await bench.trial(run, { prepare, validator: validator(source, { runsIn: 'same' }) });
    expect(result.verdict).toBe('failed');
    expect(result.validations?.find(({ name }) => name === 'the result')?.message).toMatch(
      /'wrong' !== 'right'|right/,
    );
  });

  test('in the agent’s sandbox is refused where it imports what only the agent installed', async () => {
    const run = `mkdir -p /node_modules/theirs; echo 'export {}' > /node_modules/theirs/index.mjs
echo '{"name": "theirs", "exports": "./index.mjs"}' > /node_modules/theirs/package.json`;
    const source = module(`import 'theirs'; validate('passes', () => 1);`);
    const result = await bench.trial(run, { validator: validator(source, { runsIn: 'same' }) });
    expect(result).toMatchObject({
      verdict: 'void',
      cause: {
        message: expect.stringMatching(/^the validator could not be loaded: Cannot find package 'theirs'/),
      },
    });
  });
});

test.concurrent('a program validator does not start in the agent’s own sandbox', async () => {
  const result = await bench.trial('true', { validator: validator('#!/bin/sh\n', { runsIn: 'same' }) });
  expect(result).toMatchObject({
    verdict: 'void',
    cause: { message: expect.stringContaining('use a module instead') },
  });
});

test.concurrent('an agent that spends all it may is judged all the same', async () => {
  const source = module(
    `validate('good', ({ judge }) => judge({ rubric: 'Is it good?', material: 'work', threshold: 0.5 }));`,
  );
  const result = await bench.trial('', {
    model: 'spender',
    modelConfig: models.spender,
    harness: 'bash',
    judges: ['judge'],
    validator: validator(source),
  });
  expect(result.cause?.message).toMatch(/budget/);
  expect(result).toMatchObject({ verdict: 'failed', judgments: [{ score: 0.1 }] });
});

test.concurrent('an agent whose work is too much for a judge has failed', async () => {
  const source = module(
    `validate('good', async ({ judge, read }) => judge({ rubric: 'Is it good?', material: await read('reply'), threshold: 0.5 }));`,
  );
  const result = await bench.trial('head -c 40000000 /dev/zero | tr "\\0" a > reply', {
    judges: ['judge'],
    validator: validator(source),
  });
  expect(result).toMatchObject({ verdict: 'failed', validations: [{ status: 'failed' }] });
});

test.concurrent.for([
  ['answers in prose', 'prose'],
  ['refuses every request', 'refusing'],
] as const)(
  'a judge that %s is not the agent’s fault, though untouched work needs no judge',
  async ([, judge]) => {
    const source = module(
      `validate('good', async ({ judge, read }) => judge({ rubric: 'Is it good?', material: await read('reply'), threshold: 0.5 }));`,
    );
    const result = await bench.trial('echo good work > reply', {
      judges: [judge],
      validator: validator(source),
    });
    expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'model', phase: 'validate' } });
  },
);

test.concurrent('a validator that asks a judge where the suite has none gives no verdict', async () => {
  const source = module(
    `validate('good', async ({ judge, read }) => judge({ rubric: 'Is it good?', material: await read('reply'), threshold: 0.5 }));`,
  );
  const result = await bench.trial('echo good work > reply', { validator: validator(source) });
  expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'grading' } });
});

test.concurrent('an agent that leaves nothing to judge has failed, though judges have spent all they may', async () => {
  const source = module(
    `validate('good', async ({ judge }) => {
      for (const rubric of ['Is it good?', 'Is it short?']) await judge({ rubric, material: '' });
    });
    validate('whole', () => { if (!fs.existsSync('data')) process.exit(1); });`,
  );
  const result = await bench.trial('rm -r data', {
    judges: ['judge'],
    prepare: 'mkdir data',
    validator: validator(source),
  });
  expect(result).toMatchObject({
    verdict: 'failed',
    cause: {
      kind: 'agent',
      message: expect.stringContaining('an untouched workspace can be graded'),
    },
  });
});

test.concurrent('work that changes protected files while a validator runs it has failed', async () => {
  const source = module(
    `validate('tests pass', async ({ run }) => {
      await run('./work');
      const { exitCode } = await run('sh', ['test/check.sh']);
      assert.equal(exitCode, 0);
    });`,
  );
  const result = await bench.trial(work('echo "exit 0" > test/check.sh'), {
    prepare: 'mkdir test; echo "exit 1" > test/check.sh',
    protected: ['test/**'],
    validator: validator(source),
  });
  expect(result).toMatchObject({
    verdict: 'failed',
    validations: [
      { name: 'tests pass', status: 'passed' },
      {
        name: 'protected files',
        status: 'failed',
        message: expect.stringContaining('"test/check.sh"'),
      },
    ],
  });
});

test.concurrent('the work may be called with a file beside the validator', async () => {
  const source = module(
    `validate('answers', async ({ run }) => {
      const { exitCode, stdout, stderr } = await run('node', [\`\${import.meta.dirname}/probe.mjs\`]);
      assert.equal(exitCode, 0, stderr);
      assert.equal(stdout, '42\\n');
    });`,
  );
  const probe = `import { createRequire } from 'node:module';
console.log(createRequire(import.meta.url)(\`\${process.cwd()}/answer.js\`).answer);`;
  const result = await bench.trial('echo "exports.answer = 42;" > answer.js', {
    validator: validator(source, { files: [{ path: 'probe.mjs', content: probe }] }),
  });
  expect(result).toMatchObject({ verdict: 'passed' });
});

test.concurrent('a program validator asks git for changes, and nothing of the agent’s runs for it', async () => {
  const source = '#!/bin/sh\nset -e\ngit diff-index --quiet HEAD --\n! test -e /tmp/ran';
  const identity = '-c user.name=a -c user.email=a@b';
  const agent = `git config core.fsmonitor 'touch /tmp/ran; false'; echo 1 > a; git add -A; git ${identity} commit -qm a`;
  const result = await bench.trial(agent, { prepare: 'git init -q', validator: validator(source) });
  expect(result).toMatchObject({ verdict: 'passed' });
});
