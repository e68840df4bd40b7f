import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { ReportedValidation, Validation } from '../../src/contract/validation.ts';
import { reportedForm } from '../../src/validate/record.ts';
import { scored, scriptedJudge } from './scripted-judge.ts';
import { openValidatorBench, type ValidatorBench } from './validator-bench.ts';

let bench: ValidatorBench;
beforeAll(async () => {
  bench = await openValidatorBench();
});
afterAll(() => bench?.[Symbol.asyncDispose]());

describe('a validation', () => {
  test('sees what the harness said, used and changed, and reads the workspace but not beyond it', async () => {
    const { validations, failure } = await bench.run(
      `import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
      validate('all', async ({ finalMessage, usage, filesChanged, read, files, input, metadata }) => {
        mkdirSync('deep/er', { recursive: true });
        writeFileSync('deep/er/.hidden\\n', '');
        symlinkSync('/etc/passwd', 'passwd');
        await assert.rejects(read('passwd'), /leads out of the workspace/);
        await assert.rejects(read('../etc/passwd'), /leads out of the workspace/);
        input({ looked: 'at it' });
        metadata({ tries: 2 });
        metadata({ tool: 'x' });
        return [finalMessage, usage, filesChanged, await read('answer.txt'), await files(), await files('*.txt')];
      });`,
      { finalMessage: 'Done.', usage: { inputTokens: 5 }, filesChanged: ['answer.txt'] },
    );
    expect(failure).toBeUndefined();
    expect(JSON.parse(validations[0]?.output?.text ?? validations[0]?.message ?? '')).toEqual([
      'Done.',
      { inputTokens: 5 },
      ['answer.txt'],
      '42\n',
      ['answer.txt', 'deep/er/.hidden\n', 'passwd'],
      ['answer.txt'],
    ]);
    expect(validations).toMatchObject([
      {
        kind: 'code',
        status: 'passed',
        input: { text: '{\n  "looked": "at it"\n}', format: 'json', state: 'captured' },
        output: { format: 'json' },
        metadata: { text: '{\n  "tries": 2,\n  "tool": "x"\n}', format: 'json' },
      },
    ]);
  });

  test('that fails says how the values differ, whoever made the assertion', async () => {
    const { validations } = await bench.run(`
      validate('own message', () => assert.deepEqual({ a: 1, b: 2 }, { a: 1, b: 3 }, 'not the same'));
      validate('node', () => assert.equal('left', 'right'));
      validate('a library', () => { throw Object.assign(new Error('expected 1 to be 2'), { actual: 1, expected: 2 }); });
      validate('no error', () => { throw 'a text'; });
      validate('a condition', () => assert.ok(0, 'there is no text'));`);
    const messages = validations.map(({ message }) => message);
    expect(messages[0]).toMatch(/^not the same\n.*\+ actual - expected.*\n\+ +b: 2\n- +b: 3/s);
    expect(messages[1]).toMatch(/'left' !== 'right'|\+ actual - expected/);
    expect(messages[2]).toBe('expected 1 to be 2\n\n+ actual - expected\n+ 1\n- 2');
    expect(messages[3]).toBe("'a text'");
    expect(messages[4]).toBe('there is no text');
  });

  test('past its own deadline comes to no verdict, which is a failure of the grading, and the next one runs', async () => {
    const { validations, failure } = await bench.run(`
      validate('slow', { timeout: 20 }, async ({ signal, run }) => {
        await run('sleep', ['600']);
        console.log(signal.aborted);
        await new Promise(() => setInterval(() => console.log('late'), 5));
      });
      validate('next', async () => { await new Promise((done) => setTimeout(done, 100)); console.log('mine'); });`);
    expect(failure).toMatchObject({
      kind: 'broken',
      message: '"slow" gave no verdict: it did not finish within 0.02 s',
    });
    expect(validations).toMatchObject([
      { name: 'slow', status: 'voided' },
      { name: 'next', status: 'passed', logs: [{ level: 'stdout', value: { text: 'mine\n' } }] },
    ]);
    expect(validations[0]).not.toHaveProperty('exitCode');
  });
});

describe('what a validator runs of the work, in a sandbox of its own', () => {
  test('can read neither the validator nor its memory, and cannot kill it, and works in the workspace', async () => {
    const container = await bench.another();
    await container.put([{ path: '/workspace/out/file', content: 'x' }]);
    const { validations, failure } = await bench.run(
      `validate('apart', async ({ run }) => {
        const shell = async (line) => { const { exitCode, stdout } = await run('sh', ['-c', line]); return [exitCode, stdout]; };
        return [
          await shell('cat ' + import.meta.dirname + '/expected.json ' + import.meta.dirname + '/validator.mts; ls ' + import.meta.dirname),
          await shell('cat /proc/$PPID/environ'),
          await shell('dd if=/proc/$PPID/mem bs=1 count=1 skip=4096'),
          await shell('echo forged > /proc/$PPID/fd/1'),
          await shell('kill -9 $PPID'),
          await shell('id -u; echo y > out/file; cat out/file; test -w $HOME -a -w $TMPDIR && echo own'),
          (await run('sh', ['-c', 'id -u'], { as: 'validator' })).stdout,
          (await run('node', [import.meta.dirname + '/parts/probe.mjs'])).stdout,
          fs.readFileSync(import.meta.dirname + '/expected.json', 'utf8'),
        ];
      });`,
      {
        container,
        files: [
          { path: 'expected.json', content: 'secret' },
          { path: 'parts/probe.mjs', content: 'console.log(process.getuid())' },
        ],
      },
    );
    expect(failure).toBeUndefined();
    const [file, environment, memory, output, kill, work, own, probe, expected] = JSON.parse(
      validations[0]?.output?.text ?? validations[0]?.message ?? '',
    );
    for (const [exitCode, stdout] of [file, environment, memory, output, kill]) {
      expect(exitCode).not.toBe(0);
      expect(stdout).toBe('');
    }
    expect(work).toEqual([0, '65534\ny\nown\n']);
    expect(own).toBe('64201\n');
    expect(probe).toBe('65534\n');
    expect(expected).toBe('secret');
  });

  test('does not hold up the validation by what it leaves behind', async () => {
    const { validations } = await bench.run(`
      validate('leaves', async ({ run }) => (await run('sh', ['-c', 'echo first; setsid sleep 600 & sleep 600 &'])).stdout);
      validate('floods', async ({ run }) => { const { stdout, truncated } = await run('sh', ['-c', 'yes | head -c 9000000']); return [stdout.length, truncated]; });`);
    expect(validations).toMatchObject([
      { output: { text: 'first\n' } },
      { output: { text: `[\n  ${8 * 1024 ** 2},\n  true\n]` } },
    ]);
    await bench.container.killAll();
  });
});

describe('a model', () => {
  const source = `
    validate('asks', async ({ answer, judge, metadata }) => {
      metadata({ said: await answer({ prompt: 'What is it?', material: 'a cat', temperature: 0, seed: 3 }) });
      const { score, passed } = await judge({ rubric: 'Is it a cat?', material: { 'it.txt': 'meow' }, threshold: 0.5 });
      await judge({ rubric: 'Is it nice?', material: 'meow', name: 'niceness' });
      return [score, passed];
    });
    validate('other', () => 1);`;

  test('answers and judges, and all of it is in the record; a report has what it may have', async () => {
    const { ask } = scriptedJudge('a cat', scored(0.4, 'half a cat'), scored(1));
    const { validations, judgments, failure } = await bench.run(source, { judge: ask });
    expect(failure).toBeUndefined();
    const [asks] = validations;
    expect(asks).toMatchObject({
      status: 'passed',
      output: { text: '[\n  0.4,\n  false\n]' },
      metadata: { text: '{\n  "said": "a cat"\n}' },
      calls: [
        { index: 0, method: 'answer', output: { text: 'a cat', format: 'text' } },
        { index: 1, method: 'judge', output: { text: scored(0.4, 'half a cat') } },
        { index: 2, method: 'judge' },
      ],
      judgment: { name: 'asks', score: 0.4, threshold: 0.5, reason: 'half a cat' },
    });
    expect(JSON.parse(asks?.calls?.[0]?.input?.text ?? '')).toMatchObject({ temperature: 0, seed: 3 });
    expect(judgments.map(({ name }) => name)).toEqual(['asks', 'niceness']);
    for (const validation of validations) {
      expect(Validation.parse(JSON.parse(JSON.stringify(validation)))).toEqual(
        JSON.parse(JSON.stringify(validation)),
      );
      const reported = JSON.parse(JSON.stringify(reportedForm(validation)));
      expect(ReportedValidation.parse(reported)).toEqual(reported);
      expect(reported).not.toHaveProperty('kind');
    }
  });

  test('that nobody configured, or that is asked wrongly, is the grading’s failure, even for a validator that shrugs it off', async () => {
    const shrugs = (call: string) =>
      `validate('v', async ({ judge, answer }) => { try { await ${call}; } catch { return 'fine'; } });`;
    const none = await bench.run(shrugs(`answer('who?')`));
    expect(none.failure).toMatchObject({
      kind: 'broken',
      message: expect.stringContaining('no judge model is configured'),
    });
    expect(none.validations).toMatchObject([{ status: 'voided' }]);
    const { ask } = scriptedJudge('x');
    const wrong = await bench.run(shrugs(`judge({ rubric: '', material: 'x', votes: 0 })`), { judge: ask });
    expect(wrong.failure?.message).toMatch(/judge\(\) of "v" failed: the request is invalid: rubric.*votes/);
  });

  test('that cannot be reached is a failure with the question that got no answer', async () => {
    const unreachable = {
      code: 'MODEL_UNREACHABLE',
      kind: 'infrastructure',
      hint: 'Check its baseUrl.',
    } as const;
    const gone = new OffsiteError('nobody answers', unreachable);
    const { ask } = scriptedJudge(gone);
    const { failure, validations } = await bench.run(`validate('v', ({ answer }) => answer('who?'));`, {
      judge: ask,
    });
    expect(failure).toMatchObject({
      message: 'answer() of "v" failed: nobody answers. Check its baseUrl.',
      ask: { validation: 'v', method: 'answer' },
    });
    expect(validations).toMatchObject([{ status: 'voided', calls: [{ error: { text: 'nobody answers' } }] }]);
  });

  test('is not quoted with capture: false, though times and scores stay', async () => {
    const { ask } = scriptedJudge('word-1', scored(0.4, 'word-2'), scored(1, 'word-3'));
    const run = await bench.run(`${source}\n//`, { judge: ask, capture: false });
    expect(JSON.stringify(run)).not.toMatch(/word-|meow|What is it/);
    expect(run).toMatchObject({
      judgments: [{ score: 0.4, threshold: 0.5 }, { score: 1 }],
      validations: [
        {
          calls: [
            { method: 'answer', output: { text: '', state: 'omitted' }, durationMs: expect.any(Number) },
            {},
            {},
          ],
        },
        {},
      ],
    });
    expect(JSON.stringify(run.validations.map(reportedForm))).not.toContain('omitted');
  });
});

describe('a program that prints a test report', () => {
  test('has its tests as validations, matched to the manifest', async () => {
    const { validations, failure } = await bench.run(
      '#!/bin/sh\nprintf "TAP version 13\\nok 1 - second\\nnot ok 2 - first\\n1..2\\n"; exit 1',
      { manifest: ['first', 'second'].map((name, index) => ({ index, name })) },
    );
    expect(failure).toBeUndefined();
    expect(validations).toMatchObject([
      { index: 0, name: 'first', kind: 'program', status: 'failed', exitCode: 1 },
      { index: 1, name: 'second', status: 'passed', exitCode: 0 },
    ]);
  });

  test('and fails although all tests in it pass, has failed', async () => {
    const { validations } = await bench.run('#!/bin/sh\nprintf "1..1\\nok 1 - a\\n"; exit 3');
    expect(validations).toMatchObject([
      { name: 'a', exitCode: 0 },
      { name: 'exit code', exitCode: 3, status: 'failed' },
    ]);
  });

  test('that cannot be read, or lacks a name of the manifest, is the grading’s failure', async () => {
    const cut = await bench.run('#!/bin/sh\necho "<testsuite><testcase"');
    expect(cut.failure?.message).toContain('a junit report that cannot be read');
    const missing = await bench.run('#!/bin/sh\nprintf "1..1\\nok 1 - a\\n"', {
      manifest: [{ index: 0, name: 'b' }],
    });
    expect(missing.failure?.message).toBe('the validator printed no test for these names in its manifest: b');
  });

  test('comes from node --test as it is', async () => {
    const { validations, failure } = await bench.run(
      '#!/bin/sh\nexec node --test --test-reporter=tap "$(dirname "$0")/t.mjs"',
      {
        files: [
          {
            path: 't.mjs',
            content: `import { test } from 'node:test'; import fs from 'node:fs'; import assert from 'node:assert';
            test('is 42', () => assert.equal(fs.readFileSync('/workspace/answer.txt', 'utf8'), '42\\n'));
            test('is 41', () => assert.equal(fs.readFileSync('/workspace/answer.txt', 'utf8'), '41\\n'));`,
          },
        ],
      },
    );
    expect(failure).toBeUndefined();
    expect(validations).toMatchObject([
      { name: 'is 42', exitCode: 0 },
      { name: 'is 41', exitCode: 1, error: { text: expect.stringContaining('41') } },
    ]);
  });
});
