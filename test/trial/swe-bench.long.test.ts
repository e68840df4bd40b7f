import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { PlannedCase } from '../../src/suite/plan.ts';
import { planTasks } from '../../src/tasks/plan-tasks.ts';
import { type SweRow, unittestCommand, writeSweRow } from './swe-row.ts';
import { openTrialBench, type TrialBench } from './trial-bench.ts';

let bench: TrialBench;
let folder: string;
let row: SweRow;
beforeAll(async () => {
  bench = await openTrialBench();
  folder = mkdtempSync(join(tmpdir(), 'offsite-swe-'));
  row = writeSweRow(join(folder, 'context'));
});
afterAll(async () => {
  await bench[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

interface Change extends Partial<SweRow> {
  command?: string;
  parser?: 'django' | 'junit';
}

function planned({
  command = unittestCommand,
  parser = 'django',
  ...change
}: Change = {}): PlannedCase['local'] {
  const path = join(folder, `rows-${Math.random()}.jsonl`);
  writeFileSync(path, `${JSON.stringify({ ...row, ...change })}\n`);
  const build = {
    context: join(folder, 'context'),
    dockerfile: 'Dockerfile',
    args: { BASE: '{base_commit}' },
  };
  const { cases, leftOut } = planTasks(
    { path, build, test: { command, parser } },
    { except: [], images: { 'ubuntu:24.04': 'offsite/base' }, keys: undefined },
  );
  const [local] = cases.map((one) => one.local);
  if (!local) throw new Error(JSON.stringify(leftOut));
  return local;
}

async function graded(run: string, change?: Change) {
  const { environment, tests } = planned(change);
  const result = await bench.trial(run, { environment, tests });
  const printed = result.validations?.[0]?.logs?.[0]?.value?.text ?? '';
  return { ...result, printed, rewards: result.judgments?.map(({ name, score }) => [name, score]) };
}

const solve = 'echo "def add(a, b): return a + b" > calc/add.py';

describe.concurrent('a row of SWE-bench', () => {
  test('is resolved by work that makes the named tests pass, and not without', async () => {
    const solved = await graded(`${solve}; rm calc/unused.py; git add .; git commit --quiet -m mine`);
    expect(solved.cause).toBeUndefined();
    expect(solved.rewards).toEqual([['resolved', 1]]);
    expect([solved.verdict, solved.validatedIn]).toEqual(['passed', 'fresh']);
    expect(solved.printed).toMatch(/test_add\.py\ntest_data\.py\n# of the repository\n/);
    expect(solved.printed).not.toContain('old_test');

    const not = await graded('true');
    expect(not.verdict).toBe('failed');
    expect(not.validations?.[0]?.message).toBe(
      'resolved is 0, below 1; 2 of 3 tests did not pass: ' +
        row.FAIL_TO_PASS.map((name) => JSON.stringify(name)).join(', '),
    );
  });

  test('counts a named test that did not run as failed', async () => {
    const FAIL_TO_PASS = [...row.FAIL_TO_PASS, 'test_other (tests.test_add.AddTest.test_other)'];
    const { verdict, validations } = await graded(solve, { FAIL_TO_PASS });
    expect(verdict).toBe('failed');
    expect(validations?.[0]?.message).toContain('1 of 4 tests did not pass: "test_other');
  });

  test('has no verdict if nothing that ran has a result', async () => {
    const { verdict, cause } = await graded(solve, { command: 'echo nothing; exit 0' });
    expect(verdict).toBe('void');
    expect(cause).toMatchObject({ kind: 'grading', output: 'nothing\n' });
    expect(cause?.message).toContain('the output names no test with its result (bash exited with 0)');
  });

  test('has no verdict if the test patch cannot be applied, which is the fault of the task', async () => {
    const test_patch = row.test_patch.replace('add(1, 0)', 'add(2, 0)');
    const { verdict, cause } = await graded(solve, { test_patch });
    expect(verdict).toBe('void');
    expect(cause).toMatchObject({ kind: 'task', output: expect.stringContaining('patch does not apply') });
    const unknown = await graded(solve, { base_commit: '0123456789012345678901234567890123456789' });
    expect(unknown.verdict).toBe('void');
    expect(unknown.cause?.kind).toBe('task');
  });

  test('is read whole where its patches were stripped', async () => {
    const stripped = { test_patch: row.test_patch.trimEnd(), patch: row.patch.trimEnd() };
    const { environment, tests, oracle } = planned(stripped);
    const [gold] = oracle?.files ?? [];
    if (!gold || !('content' in gold)) throw new Error('the solution is a patch in a file');
    const apply = `git apply <<'END'\n${gold.content}END`;
    const { verdict, cause } = await bench.trial(apply, { environment, tests });
    expect(cause).toBeUndefined();
    expect(verdict).toBe('passed');
  });

  test('gets the folder of data that has the name of a test', async () => {
    const data = 'mkdir -p tests/test_add; echo mine > tests/test_add/data.txt';
    const { rewards, printed } = await graded(`${solve}; ${data}`, {
      command: `cat tests/test_add/data.txt; ${unittestCommand}`,
    });
    expect(rewards).toEqual([['resolved', 1]]);
    expect(printed).toMatch(/^mine\n/);
  });

  test('may write a report, by which tests are found', async () => {
    const report = (result: string) =>
      '<testsuite><testcase classname="tests.test_add.AddTest" name="test_one[a b]"/>' +
      `<testcase classname="tests.test_add" name="test_two">${result}</testcase></testsuite>`;
    const names = {
      FAIL_TO_PASS: ['tests/test_add.py::AddTest::test_one[a b]', 'tests/test_add.py::test_two'],
      PASS_TO_PASS: [],
    };
    const writes = (xml: string) => ({
      ...names,
      parser: 'junit' as const,
      command: `echo '${xml}' > {report}`,
    });
    const [passed, failed, broken, none] = await Promise.all([
      graded('true', writes(report(''))),
      graded('true', writes(report('<failure message="no"/>'))),
      graded('true', writes('<testsuite>')),
      graded('true', { ...names, parser: 'junit', command: 'true' }),
    ]);
    expect([passed.verdict, failed.verdict, broken.verdict, none.verdict]).toEqual([
      'passed',
      'failed',
      'void',
      'void',
    ]);
    expect(failed.validations?.[0]?.message).toContain('"tests/test_add.py::test_two"');
    expect(broken.cause?.message).toContain('the report of the tests cannot be read');
    expect(none.cause?.message).toContain('the tests wrote no report');
  });
});

describe.concurrent('an agent that prepares its workspace for the tests of a row', () => {
  /** What passes without the work being done. */
  const fake =
    'import unittest\\nclass AddTest(unittest.TestCase):\\n  def test_one(self): pass\\n  def test_zero(self): pass\\n';
  test.each([
    [
      'the tests that are named',
      `printf '${fake}' > tests/test_add.py; printf '${fake}' > tests/test_data.py`,
    ],
    [
      'a folder in place of a test',
      `rm tests/test_add.py; mkdir tests/test_add.py; echo > tests/test_add.py/__init__.py`,
    ],
    ['a link in place of a test', `printf '${fake}' > mine.py; ln -sf ../mine.py tests/test_add.py`],
    [
      'a link in place of the tests',
      `mv tests mine; ln -s mine tests; printf '${fake}' > mine/test_add.py; echo "# mine" > mine/conftest.py`,
    ],
    ['a file in place of the tests', 'rm -r tests; echo > tests'],
    ['a conftest.py', 'echo "# mine" > tests/conftest.py; echo "raise SystemExit" > sitecustomize.py'],
    [
      'commits',
      `printf '${fake}' > tests/test_add.py; git commit --quiet -am mine; git tag -f $(git rev-parse HEAD~)`,
    ],
    [
      'a repository that runs programs',
      'printf "#!/bin/sh\\ntouch /tmp/ran\\n" | tee .git/hooks/post-checkout .git/mine; chmod +x .git/hooks/* .git/mine; ' +
        'git config core.fsmonitor "$PWD/.git/mine"; git config filter.f.smudge "$PWD/.git/mine"; ' +
        'echo "* filter=f" > .gitattributes; rm calc/unused.py',
    ],
    ['another repository', 'rm -rf .git; git init --quiet; git add .; git commit --quiet -m mine'],
    ['no repository', 'rm -rf .git'],
    [
      'bytecode in place of the tests',
      `printf '${fake}' > mine.py; mkdir -p tests/__pycache__; python3 -c "import py_compile as p; ` +
        `p.compile('mine.py', cfile='tests/__pycache__/test_add.cpython-311.pyc', ` +
        `invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)"`,
    ],
    [
      'a package that is imported in place of a test',
      `mkdir tests/test_add; printf '${fake}' > tests/test_add/__init__.py; cp -r tests/test_add tests/test_data`,
    ],
    [
      'a link to a package that is imported in place of a test',
      `mkdir mine; printf '${fake}' > mine/__init__.py; ln -s ../mine tests/test_add; ln -s ../mine a; ln a tests/test_data; ln tests/test_add z`,
    ],
    [
      'a module that is loaded in place of a test',
      'echo x | tee tests/test_add.so > tests/test_data.abi3.so; echo x > tests/test_add.pyc',
    ],
    [
      'a hard link to the repository',
      'echo "# mine" > .git/mine; ln -f .git/mine tests/conftest.py; ln .git/mine calc/mine.py',
    ],
  ])('gains nothing by %s', async (_, run) => {
    const command = `${unittestCommand}; ls /tmp/ran; git status --short; git log --format=%s`;
    const result = await graded(run, { command });
    expect(result.cause).toBeUndefined();
    expect(result.rewards).toEqual([['resolved', 0]]);
    expect(result.printed).toContain('# of the repository\n');
    expect(result.printed).not.toContain('# mine');
    expect(result.printed).toContain("cannot access '/tmp/ran'");
    // The repository is that of the image.
    expect(result.printed).toMatch(/\nbase\n$/);
    expect(result.printed).toContain('FAIL: test_one (tests.test_add.AddTest.test_one)');
  });

  test('fails if it leaves no workspace, or one of holes', async () => {
    const [none, holes, link] = await Promise.all([
      graded('cd /; rm -rf /testbed'),
      graded('truncate -s 1T large'),
      graded('cd /; mv /testbed /mine; ln -s /mine /testbed'),
    ]);
    expect([none.verdict, holes.verdict, link.verdict]).toEqual(['failed', 'failed', 'failed']);
    expect(holes.cause).toBeUndefined();
  });
});
