import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { freshVerify } from '../../src/suite/plan.ts';
import { validate } from '../../src/trial/grade/validate.ts';
import { GradingSandboxes, type TrialParts, type TrialSandbox } from '../../src/trial/phase.ts';
import { Sandboxes } from '../../src/trial/prepare/sandboxes.ts';
import { bench, sharedBench } from './shared-bench.ts';
import { specOf, validator } from './trial-bench.ts';

sharedBench();

const module = (body: string) =>
  `import { validate } from 'offsite/validator'; import assert from 'node:assert/strict'; import fs from 'node:fs';\n${body}`;

describe.concurrent('a validator', () => {
  test('sees the workspace as the harness left it, in a sandbox of its own', async () => {
    const result = await bench.trial(
      `rm gone; echo new > 'line
break'; ln -s gone dangling; mkdir -m 700 closed; echo in > closed/in; echo outside > /opt/outside`,
      {
        prepare: 'echo old > gone; echo kept > kept; echo before > /opt/prepared',
        validator: validator(
          module(`validate('all', async ({ files, read, run, filesChanged, trajectory }) => [
            await files(), await read('line\\nbreak'), await read('closed/in'), fs.readlinkSync('dangling'),
            fs.existsSync('/opt/outside'), fs.existsSync('/opt/prepared'), filesChanged.length, trajectory.length,
            (await run('sh', ['-c', 'cat closed/in; echo more > kept; cat kept'])).stdout,
          ]);`),
        ),
      },
    );
    expect(result).toMatchObject({ verdict: 'passed', cause: undefined });
    expect(JSON.parse(result.validations?.[0]?.output?.text ?? '')).toEqual([
      ['closed/in', 'dangling', 'kept', 'line\nbreak'],
      'new\n',
      'in\n',
      'gone',
      false,
      true,
      4,
      expect.any(Number),
      'in\nmore\n',
    ]);
  });

  test('may look and run things where the harness worked, and then sees what it installed', async () => {
    const result = await bench.trial('echo outside > /opt/outside', {
      validator: validator(
        module(`validate('a', async ({ read, run }) => {
        assert.ok(!fs.existsSync('/opt/outside'));
        return (await read('/opt/outside')) + (await run('cat', ['/opt/outside'])).stdout;
      });`),
        {
          runsIn: 'same',
        },
      ),
    });
    expect(result).toMatchObject({
      verdict: 'passed',
      validations: [{ output: { text: 'outside\noutside\n' } }],
    });
  });

  test('that cannot run makes the trial failed where its author says so', async () => {
    const result = await bench.trial('true', { validator: validator('syntax error', { onError: 'failed' }) });
    expect(result).toMatchObject({
      verdict: 'failed',
      cause: {
        kind: 'grading',
        phase: 'validate',
        message: expect.stringMatching(/^the validator could not be loaded/),
      },
    });
  });

  test('fails the trial by a judgment under its threshold, and a judge that cannot be reached by none', async () => {
    const source = module(
      `validate('kind', ({ judge }) => judge({ rubric: 'Is it kind?', material: 'hi', threshold: 0.5 }));`,
    );
    const said = await graded(source, async () => '{"reason": "rude", "score": 0.2}');
    expect(said).toMatchObject({
      verdict: 'failed',
      validations: [{ status: 'passed', judgment: { score: 0.2, reason: 'rude' } }],
      judgments: [{ name: 'kind', threshold: 0.5 }],
    });
    const unreachable = new OffsiteError('nobody answers', {
      code: 'MODEL_UNREACHABLE',
      kind: 'infrastructure',
    });
    const gone = await graded(source, () => Promise.reject(unreachable), 'failed');
    expect(gone).toMatchObject({
      verdict: 'void',
      cause: { kind: 'model', message: 'judge() of "kind" failed: nobody answers' },
    });
  });
});

test('a validator that checks nothing gives no verdict, which is the fault of the case', async () => {
  expect(await graded(module('console.log(1)'), () => expect.fail())).toMatchObject({
    verdict: 'void',
    cause: { kind: 'task', message: 'there was nothing to check' },
  });
});

describe.concurrent('protected files', () => {
  const change = {
    prepare: 'mkdir -p test; echo "exit 1" > test/check.sh; echo "exit 1" > test/other.sh',
    verify: 'sh test/check.sh',
    protected: ['test/**'],
  };

  test.each([
    [
      'added to',
      "echo 'exit 0' > test/check.sh; echo > test/$'new\\e[31m\\nname'",
      ['"test/new\\u001b[31m\\nname"'],
    ],
    ['replaced by a link', "mkdir own; echo 'exit 0' > own/check.sh; rm -r test; ln -s own test", ['"test"']],
  ])('that are %s fail the trial, whatever verify says of them', async (_, run, named) => {
    const result = await bench.trial(run, change);
    expect(result.verifySteps).toMatchObject([{ exitCode: 0 }]);
    expect(result).toMatchObject({
      verdict: 'failed',
      validations: [
        {
          name: 'protected files',
          kind: 'protected',
          status: 'failed',
          exitCode: 1,
          message: expect.stringMatching(/^files that the case protects were changed: /),
        },
      ],
    });
    // The agent finished, and everything was graded.
    expect(result.cause).toBeUndefined();
    for (const name of named) expect(result.validations?.[0]?.message).toContain(name);
  });

  test('do not include the caches that tools write beside them, which do not reach grading', async () => {
    const caches = 'mkdir -p test/__pycache__ app/test/node_modules/.cache; echo > test/__pycache__/a.pyc';
    const result = await bench.trial(`${caches}; echo > app/test/node_modules/.cache/b`, {
      prepare: 'mkdir -p test app/test/node_modules; echo "exit 0" > test/check.sh',
      verify: 'sh test/check.sh && ! test -e test/__pycache__ && ! test -e app/test/node_modules/.cache',
      protected: ['**/test/**'],
    });
    expect(result.verdict, result.cause?.message).toBe('passed');
    const notes = (result.events ?? []).flatMap((event) => (event.kind === 'note' ? [event.text] : []));
    expect(notes).toContainEqual(expect.stringMatching(/^caches of tools .* left out of grading: .*a\.pyc/));
  });

  test.each<[string, object]>([
    ['a glob names them', { protected: ['test/**', '**/.cache/**'] }],
    [
      'verify runs where the agent worked',
      { protected: ['test/**'], verifyPlace: { ...freshVerify, in: 'same' } },
    ],
  ])('include a cache of Node if %s', async (_, more) => {
    const result = await bench.trial('mkdir -p test/node_modules/.cache; echo > test/node_modules/.cache/b', {
      prepare: 'mkdir test',
      verify: 'true',
      ...more,
    });
    expect(result).toMatchObject({
      verdict: 'failed',
      validations: [{ message: expect.stringContaining('.cache/b') }],
    });
  });

  test('that were left alone are said to be', async () => {
    const result = await bench.trial('echo > elsewhere', { ...change, verify: 'true' });
    expect(result).toMatchObject({
      verdict: 'passed',
      validations: [{ name: 'protected files', index: 0, status: 'passed', exitCode: 0 }],
    });
  });
});

/** The validation of an untouched workspace with a judge, without the rest of a trial. */
async function graded(source: string, said: () => Promise<string>, onError: 'void' | 'failed' = 'void') {
  const spec = specOf('true', { validator: validator(source, { onError }), judges: ['judge'] });
  const signal = new AbortController().signal;
  await using sandboxes = new Sandboxes(bench.engine, undefined);
  const sandbox = await sandboxes.take(spec, signal);
  using given = new DisposableStack();
  given.defer(() => sandboxes.giveBack(sandbox));
  const chat = async () => ({ text: await said(), calls: [], stopped: 'done', usage: {}, model: 'judge' });
  const session = { chat, account: async () => ({ usage: [] }) };
  const parts = { sandboxes, clock: systemClock };
  using graders = new GradingSandboxes({
    spec,
    parts: parts as unknown as TrialParts,
    signal,
    services: undefined,
  });
  const place = { ...sandbox, parts, graders, signal, models: { session } };
  return await validate.run(spec, place as unknown as TrialSandbox, {});
}
