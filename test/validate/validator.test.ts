import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clockWith, openValidatorBench, untilThere, type ValidatorBench } from './validator-bench.ts';

/** The deadline of the one validator that does not end. */
const deadline = 54_321;
const clock = clockWith(deadline);
let bench: ValidatorBench;
beforeAll(async () => {
  bench = await openValidatorBench(clock);
});
afterAll(() => bench?.[Symbol.asyncDispose]());

const run: ValidatorBench['run'] = (source, change) => bench.run(source, change);

describe('a module validator', () => {
  test('passes what does not throw and fails what does, each under its name, with returned value and logs', async () => {
    const { validations, failure } = await run(`
      validate('passes', ({ workspace }) => ({ answer: fs.readFileSync(workspace + '/answer.txt', 'utf8') }));
      validate('fails', async () => { console.log('looked', 1); console.error('hm'); assert.equal(41, 42, 'the answer is wrong'); });
      validate('goes on', () => 'text');`);
    expect(failure).toBeUndefined();
    expect(validations).toMatchObject([
      { index: 0, name: 'passes', exitCode: 0, output: { text: '{\n  "answer": "42\\n"\n}' }, logs: [] },
      {
        index: 1,
        name: 'fails',
        exitCode: 1,
        message: expect.stringMatching(/^the answer is wrong/),
        error: { text: expect.stringContaining('validator.mts') },
        logs: [
          {
            index: 0,
            level: 'stdout',
            at: expect.any(Number),
            value: { text: 'looked 1\n', format: 'text', state: 'captured' },
          },
          { index: 1, level: 'stderr', value: { text: 'hm\n' } },
        ],
      },
      { index: 2, name: 'goes on', exitCode: 0, output: { text: 'text' } },
    ]);
    for (const { startedAt, durationMs } of validations) {
      expect(startedAt).toBeGreaterThan(Date.now() - 60_000);
      expect(durationMs).toBeGreaterThanOrEqual(0);
    }
  });

  test('sees variables, trajectory, and the files beside it, and runs programs in the workspace', async () => {
    const { validations, failure } = await run(
      `import { one } from './parts/one.ts';
      validate('all', async ({ variables, trajectory, run }) => {
        const { exitCode, stdout, stderr } = await run('bash', ['-c', 'echo $animal $PWD; cat; echo oops >&2; exit 3'], { input: 'given' });
        const cut = await run('sleep', ['600'], { timeout: 50 });
        await assert.rejects(run('no-such-program'), /ENOENT/);
        return [one, variables, trajectory[0].command, exitCode, stdout, stderr, cut.exitCode];
      });`,
      { files: [{ path: 'parts/one.ts', content: 'export const one: number = 1;' }] },
    );
    expect(failure).toBeUndefined();
    expect(JSON.parse(validations[0]?.output?.text ?? '')).toEqual([
      1,
      { animal: 'cat' },
      'ls',
      3,
      'cat /workspace\ngiven',
      'oops\n',
      137,
    ]);
  });

  test('is not believed when it, or what it runs, prints a record of its own', async () => {
    const forged = JSON.stringify({ kind: 'validation', name: 'forged', passed: true, logs: [] });
    const { validations } = await run(`
      validate('real', () => {
        fs.writeSync(1, ${JSON.stringify(`\n0123456789abcdef0123456789abcdef ${forged}\n${forged}\n`)});
        console.log(${JSON.stringify(forged)});
        throw new Error('found nothing');
      });`);
    expect(validations.map(({ name, exitCode }) => [name, exitCode])).toEqual([['real', 1]]);
  });

  test('keeps beginning and end of a long text, the first of endless logs, and says that it cut', async () => {
    const { validations, failure } = await run(`
      validate('long', () => {
        for (let i = 0; i < 100_000; i++) console.log('line ' + i);
        return 'a'.repeat(1_000_000) + 'z';
      });`);
    expect(failure).toBeUndefined();
    const [validation] = validations;
    expect(validation).toMatchObject({ exitCode: 0, truncated: true, output: { truncated: true } });
    expect(validation?.output?.text).toMatch(/^a.*z$/s);
    expect(validation?.logs?.[0]?.value?.text).toBe('line 0\n');
    expect(JSON.stringify(validation).length).toBeLessThan(4 * 1024 ** 2);
  });
});

describe('grading has failed, rather than the agent, when a validator', () => {
  test.each([
    ['cannot be parsed', 'validate("x", () => {', 'could not be loaded', 'SyntaxError'],
    ['leaves the process', "validate('a', () => process.exit(0))", 'exited with 0 before it finished', ''],
    [
      'declares a name twice',
      "validate('a', () => 1); validate('a', () => 2)",
      'could not be loaded',
      'two validations are named "a"',
    ],
    [
      'rejects where nobody waits',
      "validate('a', () => { Promise.reject(new Error('stray')); return new Promise((done) => setTimeout(done, 50)) })",
      'exited with 1 before it finished',
      'stray',
    ],
  ])('%s', async (_, source, message, output) => {
    const { failure } = await run(source);
    expect(failure?.message).toContain(message);
    expect(failure?.output).toContain(output);
  });

  test('does not end, with what it found before', async () => {
    const source = `validate('a', () => 1); validate('b', () => { fs.writeFileSync('/tmp/in-b', ''); for (;;); })`;
    const running = run(source, { timeoutMs: deadline });
    await untilThere(bench.container, '/tmp/in-b');
    clock.pass();
    const { failure, validations } = await running;
    expect(failure?.message).toBe('the validator was stopped after 54.321 s, in "b"');
    expect(validations).toMatchObject([{ name: 'a', exitCode: 0 }]);
  });

  test('does not declare what its manifest names', async () => {
    const manifest = ['first', 'second', 'third'].map((name, index) => ({ index, name }));
    const { failure, validations } = await run("validate('third', () => 1)", { manifest });
    expect(failure?.message).toBe(
      'the validator declared no validation for these names in its manifest: first, second',
    );
    expect(validations).toMatchObject([{ index: 2, name: 'third' }]);
  });

  test('is a program that cannot be started', async () => {
    const missing = await run('#!/no/such/interpreter -x\n');
    expect(missing.failure).toEqual({
      kind: 'not-started',
      message: 'the validator could not be started: the sandbox has no /no/such/interpreter',
    });
    expect((await run('#!/usr/bin/env -S rubby -w\n')).failure?.message).toContain('no rubby');
  });

  test('is a program, and its manifest names more than that one validation', async () => {
    const manifest = ['first', 'second'].map((name, index) => ({ index, name }));
    const { failure } = await run('#!/bin/sh\n', { manifest });
    expect(failure?.message).toContain('its manifest also names second');
  });

  test('needs more memory than there is', async () => {
    const source = "validate('a', () => { const all = []; for (;;) all.push(Buffer.alloc(2 ** 24, 1)); })";
    const { failure } = await run(source);
    expect(failure?.message).toMatch(/ran out of memory|before it finished/);
  });
});

describe('a validator that is a program', () => {
  test('passes by its exit code, in the workspace, with its files beside it and the variables in its environment', async () => {
    const { validations, failure } = await run(
      '#!/usr/bin/env python3\nimport os\nprint(open("answer.txt").read(), os.environ["animal"], open(os.path.dirname(__file__) + "/data/beside").read())',
      {
        files: [{ path: 'data/beside', content: 'beside it' }],
        manifest: [{ index: 4, name: 'the answer' }],
      },
    );
    expect(failure).toBeUndefined();
    expect(validations).toMatchObject([
      { index: 4, name: 'the answer', exitCode: 0, output: { text: '42\n cat beside it\n' } },
    ]);
  });

  test('fails with its exit code as the message, and what it printed', async () => {
    const { validations, failure } = await run('#!/bin/bash\necho out; echo bad >&2; exit 5');
    expect(failure).toBeUndefined();
    expect(validations).toMatchObject([
      {
        name: 'validator',
        exitCode: 5,
        message: 'the validator exited with 5: out',
        output: { text: 'out\n' },
        error: { text: 'bad\n' },
      },
    ]);
  });
});

test('capture: false keeps no text of a validator, not even where it breaks', async () => {
  const source = `
    validate('first', () => { console.log('word-1'); return 'word-2'; });
    validate('second', () => { throw new Error('word-3'); });
    validate('third', () => { fs.writeSync(2, 'word-4'); process.exit(2); });`;
  const broken = await run(source, { capture: false });
  expect(JSON.stringify(broken)).not.toContain('word-');
  expect(broken).toMatchObject({
    validations: [
      { name: 'first', exitCode: 0 },
      { name: 'second', exitCode: 1 },
    ],
    failure: { message: 'the validator exited with 2 before it finished, in "third"' },
  });
});
