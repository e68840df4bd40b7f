import { describe, expect, test } from 'vitest';
import { noEnvironment } from '../../src/suite/environment.ts';
import { someOf } from '../short-tests.ts';
import { scriptTests as tests } from './script-tests.ts';
import { bench, sharedBench } from './shared-bench.ts';
import { testImage } from './test-image.ts';

sharedBench();

const isSolved =
  'if [ "$(cat out 2>/dev/null)" = done ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt';

describe.concurrent('tests in the sandbox of the agent', () => {
  test('grade what the agent left, also outside the workspace; their exit code does not count', async () => {
    const script = `echo looking at $PWD; cat /etc/agents; ${isSolved}; exit 7`;
    const run = 'echo done > out; echo config > /etc/agents';
    const [solved, not] = await Promise.all([
      bench.trial(run, { tests: tests(script) }),
      bench.trial('true', { tests: tests(script) }),
    ]);
    expect(solved.cause).toBeUndefined();
    expect(solved.verdict).toBe('passed');
    expect(solved.judgments).toEqual([{ name: 'reward', evaluator: 'tests', score: 1, threshold: 1 }]);
    expect(solved.validations?.[0]?.logs?.[0]?.value?.text).toBe('looking at /workspace\nconfig\n');
    expect(solved.validatedIn).toBe('same');
    expect(solved.systemChanges?.unexpected.paths).toEqual(['/etc/agents']);
    expect(not.verdict).toBe('failed');
    expect(not.cause).toBeUndefined();
    expect(not.judgments?.[0]?.score).toBe(0);
    expect(not.validations?.[0]).toMatchObject({ exitCode: 1, message: 'reward is 0, below 1' });
  });

  test('grade a large workspace with paths that are longer than a program can name', async () => {
    const deep = `python3 -c "
import os
for _ in range(150): os.mkdir('n' * 40); os.chdir('n' * 40)"; truncate -s 1G sparse`;
    const result = await bench.trial(`${deep}; echo done > out`, { tests: tests(isSolved) });
    expect(result.cause).toBeUndefined();
    expect(result).toMatchObject({
      verdict: 'passed',
      filesChanged: expect.arrayContaining(['out', 'sparse']),
    });
  });

  test.each<[string, string, RegExp]>([
    [
      'wrote too much',
      'head -c 2000000 /dev/zero > /logs/verifier/reward.txt',
      /reward\.txt is larger than the limit/,
    ],
    [
      'left a link to a folder',
      'mkdir /tmp/v; echo 1 > /tmp/v/reward.txt; rm -r /logs/verifier; ln -s /tmp/v /logs/verifier',
      /after the tests, \/logs\/verifier is not a folder/,
    ],
  ])('that %s give no verdict, and not the reward 0', async (_, script, message) => {
    const result = await bench.trial('true', { tests: tests(`echo why; ${script}`) });
    expect(result.verdict).toBe('void');
    expect(result.cause).toMatchObject({ kind: 'grading', phase: 'validate', output: 'why\n' });
    expect(result.cause?.message).toMatch(message);
  });

  test('that write a reward only for solved work fail an agent if the solution of the case has one', async () => {
    const script = tests('set -e; grep -q good out; echo 1 > /logs/verifier/reward.txt');
    const files = [{ path: '/solution/solve.sh', content: Buffer.from('echo good > out\n'), mode: 0o644 }];
    const solution = { files, run: 'bash /solution/solve.sh', env: {} };
    const result = await bench.trial('echo bad > out', { tests: script, solution });
    expect(result).toMatchObject({
      verdict: 'failed',
      cause: {
        kind: 'agent',
        message: expect.stringMatching(/no reward.*the solution of the case can be graded$/),
      },
    });
  });

  test('that take too long give no verdict', async () => {
    const script = 'echo 1 > /logs/verifier/reward.txt; sleep 600';
    const result = await bench.trial('true', { tests: tests(script, { timeoutMs: 300 }) });
    expect(result.verdict).toBe('void');
    expect(result.cause?.message).toMatch(/^the tests were stopped after 0.3 s; the case is at fault: /);
  });

  test('run as the user, and with the variables, that the task names', async () => {
    const script = 'echo "$(id -un) $MODE"; echo 1 > /logs/verifier/reward.txt';
    const result = await bench.trial('true', {
      tests: tests(script, { user: 'nobody', env: { MODE: 'hard' } }),
    });
    expect(result.validations?.[0]?.logs?.[0]?.value?.text).toBe('nobody hard\n');
    expect(result.verdict).toBe('passed');
  });
});

describe.concurrent('an agent that prepares its sandbox for the tests', () => {
  test.each(
    someOf<[string, string]>([
      [
        'a reward',
        'mkdir -p /logs/verifier; echo 1 | tee /logs/verifier/reward.txt /logs/verifier/reward.json',
      ],
      ['other tests', 'mkdir -p /tests; echo "echo 1 > /logs/verifier/reward.txt" > /tests/extra.sh'],
      ['a link in place of the tests', 'mkdir /mine; ln -s /mine /tests'],
      ['a file in place of the tests', 'echo mine > /tests'],
      [
        'a link in place of the logs',
        'mkdir -p /mine/verifier; echo 1 > /mine/verifier/reward.json; ln -s /mine /logs',
      ],
      [
        'a link in place of the rewards',
        'mkdir -p /logs /mine; echo 1 > /mine/reward.json; ln -s /mine /logs/verifier',
      ],
      [
        'a process that writes the reward later',
        'setsid bash -c "while sleep 0.01; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.json; done" & disown',
      ],
    ]),
  )('gains nothing by %s', async (_, run) => {
    const script = `for extra in /tests/extra.sh; do [ -e $extra ] && . $extra; done; ls /mine/test.sh; ${isSolved}`;
    const result = await bench.trial(run, { tests: tests(`${script}; find /tests -type f`) });
    expect(result.cause).toBeUndefined();
    expect(result.judgments?.map(({ score }) => score)).toEqual([0]);
    expect(result.verdict).toBe('failed');
    const printed = result.validations?.[0]?.logs?.[0]?.value?.text;
    expect(printed).toMatch(/cannot access '\/mine\/test.sh'/);
    expect(printed).toMatch(/\n\/tests\/test\.sh\n$/);
  });

  test('does not see the tests', async () => {
    const result = await bench.trial('find / -name test.sh -path "*tests*" -not -path "/usr/*" > out', {
      tests: tests('cat out; test ! -s out; echo $((1 - $?)) > /logs/verifier/reward.txt'),
    });
    expect(result.verdict).toBe('passed');
  });

  test('fails if it breaks what the tests need, and an untouched sandbox can be graded', async () => {
    const result = await bench.trial('rm -f /usr/bin/bash /bin/bash', { tests: tests(isSolved) });
    expect(result.verdict).toBe('failed');
    expect(result.cause).toMatchObject({ kind: 'agent', phase: 'validate' });
  });
});

test('work in a folder that other programs use is graded there, and never where it would be emptied', async () => {
  await using image = await testImage(
    bench.engine,
    'FROM offsite/base\nRUN echo brought > /tmp/given && echo kept > /tmp/.other\nWORKDIR /tmp\n',
  );
  const environment = { ...noEnvironment, image: { name: image.name, place: 'suite.yaml:3:5' } };
  const isDone =
    'cat out .other; stat -c %a .; [ "$(cat /tmp/out)" = brought ] && echo 1 > /logs/verifier/reward.txt';
  const [done, refused] = await Promise.all([
    bench.trial('pwd; cat given > out; ln -s /etc/passwd link', { environment, tests: tests(isDone) }),
    bench.trial('true', { environment, verify: 'true' }),
  ]);
  expect(done.cause).toBeUndefined();
  expect(done).toMatchObject({ verdict: 'passed', workspace: '/tmp', filesChanged: ['link', 'out'] });
  expect(done.trajectory?.[0]?.output).toBe('/tmp\n');
  expect(done.validations?.[0]?.logs?.[0]?.value?.text).toBe('brought\nkept\n1777\n');
  expect(refused.cause).toMatchObject({ kind: 'task', phase: 'sandbox' });
  expect(refused.cause?.message).toMatch(
    /^suite.yaml:3:5: the working folder \/tmp cannot be the workspace: it has files of other programs/,
  );
});
