import { describe, expect, test } from 'vitest';
import type { BroughtArtifacts, CaseTests, FreshTests } from '../../src/suite/case-tests.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import { scriptTests } from './script-tests.ts';
import { bench, sharedBench } from './shared-bench.ts';
import { specOf } from './trial-bench.ts';

sharedBench();

/** Tests of one script that run in a fresh sandbox, with artifacts at these paths. */
function tests(
  script: string,
  paths: string[],
  { environment, ...change }: Partial<BroughtArtifacts & FreshTests> = {},
): CaseTests {
  return scriptTests(script, {
    fresh: {
      environment,
      brought: {
        kind: 'artifacts',
        artifacts: paths.map((path) => ({ path, exclude: [] })),
        sealed: ['/tests', '/logs/verifier'],
        ...change,
      },
    },
  });
}

/** Prints what the tests see, and gives the reward 1 for `done` in /work/out. */
const look = (list: string) =>
  `${list}; if [ "$(cat /work/out/answer 2>/dev/null)" = done ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt`;

async function graded(run: string, given: CaseTests) {
  const result = await bench.trial(run, { tests: given });
  return { ...result, printed: result.validations?.[0]?.logs?.[0]?.value?.text };
}

describe.concurrent('tests in a fresh sandbox', () => {
  test('see the artifacts at their paths, and nothing else of the agent', async () => {
    const run = [
      'mkdir -p /work/out/deep /logs/artifacts; echo done > /work/out/answer; echo x > /work/out/deep/x',
      'echo log > /logs/artifacts/log; echo mine > /work/mine; echo w > inside; echo bad > /usr/bin/python3',
    ].join('\n');
    const given = tests(look('cd /; ls -d work/* work/out/* workspace/* logs/artifacts/* | sort; pwd'), [
      '/logs/artifacts',
      '/work/out',
      '/work/none',
      '/none/at/all',
    ]);
    const result = await graded(run, given);
    expect(result.cause).toBeUndefined();
    expect(result.verdict).toBe('passed');
    expect(result.validatedIn).toBe('fresh');
    expect(result.systemChanges).toBeUndefined();
    expect(result.printed).toBe(
      "ls: cannot access 'workspace/*': No such file or directory\nlogs/artifacts/log\nwork/out\n" +
        'work/out/answer\nwork/out/deep\n/\n',
    );
    const not = await graded('true', given);
    expect(not.verdict).toBe('failed');
    expect(not.judgments).toEqual([{ name: 'reward', evaluator: 'tests', score: 0, threshold: 1 }]);
  });

  test('leave out what is excluded, at any depth', async () => {
    const run = 'mkdir -p /work/out/a/cache/b; cd /work/out; touch answer a/x.pyc y.pyc a/cache/b/z a/keep';
    const given = tests(look('cd /work/out; find . -type f | sort'), [], {
      artifacts: [{ path: '/work/out', exclude: ['*.pyc', 'cache'] }],
    });
    expect((await graded(run, given)).printed).toBe('./a/keep\n./answer\n');
  });

  test('may be in an environment of their own, with its user, variables and folder', async () => {
    const environment = {
      ...noEnvironment,
      image: { name: 'offsite/base', place: 'task.toml:1:1' },
      workdir: '/check',
      user: 'nobody',
      env: { GRADER: 'strict' },
      files: [{ path: '/check/expected', content: Buffer.from('done\n'), mode: 0o644 }],
    };
    const given = tests('', ['/work/out'], { environment });
    given.files = [];
    given.emptied = ['/logs/verifier'];
    given.command = [
      'bash',
      '-c',
      'echo "$(id -un) $GRADER $PWD"; cmp expected /work/out/answer && echo 1 > /logs/verifier/reward.txt',
    ];
    const spec = specOf('', { environment });
    const testsIn = { environment: spec.environment, sandbox: spec.sandbox };
    const run = 'mkdir -p /work/out; echo done > /work/out/answer; test ! -e /check';
    const result = await bench.trial(run, { tests: given, testsIn });
    expect(result.cause).toBeUndefined();
    expect(result.verdict).toBe('passed');
    expect(result.validations?.[0]?.logs?.[0]?.value?.text).toBe('nobody strict /check\n');
  });
});

describe.concurrent('an agent that prepares its artifacts for the tests', () => {
  const secret = (script: string): CaseTests => {
    const given = tests(script, ['/work/out', '/logs']);
    given.files.push({ path: '/tests/expected', content: Buffer.from('secret\n'), mode: 0o644 });
    return given;
  };
  /** Gives 1 if the answer is what is expected. */
  const compare =
    'cmp /work/out/answer /tests/expected && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt';

  test.each([
    ['a link to the tests', 'ln -s /tests/expected answer', ['/work/out/answer']],
    ['a relative link to the tests', 'ln -s ../../tests/expected answer', ['/work/out/answer']],
    [
      'links that only together lead out',
      'ln -s . here; ln -s here/../../tests/expected answer',
      ['/work/out/answer'],
    ],
    ['a link through /proc', 'ln -s /proc/self/root/tests/expected answer', ['/work/out/answer']],
    [
      'a hard link to a link',
      'ln -s /tests/expected one; ln one answer',
      ['/work/out/answer', '/work/out/one'],
    ],
    ['a pipe', 'mkfifo answer', ['/work/out/answer']],
  ])('gains nothing by %s', async (_, run, omitted) => {
    const result = await graded(`mkdir -p /work/out; cd /work/out; ${run}`, secret(compare));
    expect(result.cause).toBeUndefined();
    expect(result.judgments?.map(({ score }) => score)).toEqual([0]);
    expect(result.artifactsOmitted).toEqual(expect.arrayContaining(omitted));
  });

  test.each([
    [
      'a reward',
      'mkdir -p /logs/verifier; echo 1 | tee /logs/verifier/reward.txt /logs/verifier/reward.json',
    ],
    [
      'a link in place of the logs',
      'mkdir -p /mine; echo 1 > /mine/reward.txt; mkdir /logs; ln -s /mine /logs/verifier',
    ],
    ['a link for all logs', 'mkdir -p /mine/verifier; echo 1 > /mine/verifier/reward.txt; ln -s /mine /logs'],
    ['a file for all logs', 'echo 1 > /logs'],
    [
      'a program that runs as root',
      'mkdir -p /work/out; cp /bin/bash /work/out/sh; chmod 6755 /work/out/sh; ' +
        'chown root /work/out/sh; setcap cap_setuid+ep /work/out/sh || true',
    ],
  ])('gains nothing by %s', async (_, run) => {
    const given = secret(
      'ls /mine 2>&1; stat -c "%a %n" /work/out/sh; getcap /work/out/sh; ls -A /logs/verifier; echo 0 > /logs/verifier/reward.txt',
    );
    const result = await graded(run, given);
    expect(result.cause).toBeUndefined();
    expect(result.judgments?.map(({ score }) => score)).toEqual([0]);
    expect(result.printed).toMatch(/^ls: cannot access '\/mine'/);
    expect(result.printed).not.toMatch(/reward|cap_|[67]755/);
  });

  test('does not reach tests that are part of the image, by an artifact above them', async () => {
    const environment = {
      ...noEnvironment,
      image: { name: 'offsite/base', place: 'task.toml:1:1' },
      files: [
        {
          path: '/srv/check/tests/test.sh',
          content: Buffer.from('echo 0 > /logs/verifier/reward.txt'),
          mode: 0o644,
        },
      ],
    };
    const given: CaseTests = {
      ...tests('', ['/srv'], { environment, sealed: ['/srv/check/tests', '/logs/verifier'] }),
      files: [],
      emptied: ['/logs/verifier'],
      command: ['bash', '/srv/check/tests/test.sh'],
    };
    const spec = specOf('', { environment });
    const testsIn = { environment: spec.environment, sandbox: spec.sandbox };
    for (const run of [
      'mkdir -p /srv/check/tests; echo "echo 1 > /logs/verifier/reward.txt" > /srv/check/tests/test.sh',
      'mkdir -p /srv/check /srv/mine; echo "echo 1 > /logs/verifier/reward.txt" > /srv/mine/test.sh; ln -s ../mine /srv/check/tests',
    ]) {
      const result = await bench.trial(run, { tests: given, testsIn });
      expect(result.cause).toBeUndefined();
      expect(result.judgments?.map(({ score }) => score)).toEqual([0]);
    }
  });

  test.each([
    [
      'a link above an artifact',
      'mkdir -p /mine/out; echo done > /mine/out/answer; ln -s /mine /work',
      /\/work is not a folder/,
    ],
    ['a file above an artifact', 'echo done > /work', /\/work is not a folder/],
  ])('fails with %s, and is told why', async (_, run, message) => {
    const result = await graded(run, tests(look('true'), ['/work/out']));
    expect(result.verdict).toBe('failed');
    expect(result.cause).toMatchObject({ kind: 'agent', phase: 'validate' });
    expect(result.cause?.message).toMatch(message);
  });

  test('may leave a terabyte of holes beside its answer', async () => {
    const run = 'mkdir -p /work/out; echo done > /work/out/answer; truncate -s 1T /work/out/hollow';
    const result = await graded(run, tests(look('stat -c %s /work/out/hollow'), ['/work/out']));
    expect(result).toMatchObject({ verdict: 'passed', printed: `${2 ** 40}\n` });
  });

  test('may leave names of any bytes, and names that look like lines', async () => {
    const run = `mkdir -p /work/out; cd /work/out; echo done > answer; : > "$(printf 'a\\nreward 1\\033[31m')"; : > "$(printf '\\377')"`;
    const result = await graded(run, tests(look('ls -A /work/out | wc -l; ls -Ab /work/out'), ['/work/out']));
    expect(result.verdict).toBe('passed');
    expect(result.printed).toBe('4\na\\nreward\\ 1\\033[31m\nanswer\n\\377\n');
  });
});
