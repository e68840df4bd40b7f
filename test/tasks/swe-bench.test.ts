import { appendFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { TasksSource } from '../../src/suite/tasks-source.ts';
import { findTasks } from '../../src/tasks/find-tasks.ts';
import { planTasks } from '../../src/tasks/plan-tasks.ts';
import { readTask } from '../../src/tasks/read-task.ts';
import { logParsers, type NamedResult, resolution } from '../../src/tasks/swe-bench/log-parsers.ts';
import { eachTaskSet, set } from './each-task-set.ts';
import { taskOf } from './task-set.ts';

eachTaskSet();

const row = {
  instance_id: 'org__repo-1',
  repo: 'org/repo',
  base_commit: 'abc',
  problem_statement: 'It fails.',
  patch: 'diff a',
  test_patch: 'diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\n',
  FAIL_TO_PASS: '["t.py::a", "t.py::b"]',
  PASS_TO_PASS: ['t.py::c'],
  version: '1.2',
};
const lines = (...rows: unknown[]) => rows.map((each) => `${JSON.stringify(each)}\n`).join('');

test('a row is a task, whose environment the format does not name', () => {
  const file = set.write('rows.jsonl', lines(row));
  const [found] = findTasks(file).tasks;
  if (!found) throw new Error('nothing found');
  const task = taskOf(found);
  expect(task).toMatchObject({
    id: 'org__repo-1',
    tags: ['org/repo'],
    variables: { instruction: 'It fails.' },
    placed: ['diff a\n\n'],
    tests: {
      in: 'fresh',
      patch: { source: row.test_patch, base: 'abc' },
      named: { failToPass: ['t.py::a', 't.py::b'], passToPass: ['t.py::c'] },
    },
  });
  expect(task.obstacles.map(({ feature }) => feature)).toEqual(['unnamed-environment']);
});

test('each row is read at its place, between blank lines and without a last newline', () => {
  const two = JSON.stringify({ ...row, instance_id: 'two', problem_statement: 'Ä'.repeat(1_000_000) });
  const three = JSON.stringify({ ...row, instance_id: 'three', extra: 1 });
  const file = set.write('rows.jsonl', `${lines(row)}\n  \r\n${two}\r\n${three}`);
  const { tasks } = findTasks(file);
  expect(tasks.map(({ id, row }) => [id, row?.line])).toEqual([
    ['org__repo-1', 1],
    ['two', 4],
    ['three', 5],
  ]);
  expect(tasks.map((found) => taskOf(found).id)).toEqual(['org__repo-1', 'two', 'three']);
  expect(tasks.map((found) => String(taskOf(found).variables?.instruction).length)).toEqual([
    9, 1_000_000, 9,
  ]);
  const [note] = tasks.map((found) => taskOf(found).notes)[2] ?? [];
  expect(note).toMatchObject({ kind: 'unknown-key', line: 5, path: 'extra' });
});

describe('a bad row is told with its line, and the others are read', () => {
  test.each([
    [{ ...row, instance_id: 'bad', base_commit: undefined }, 'base_commit: is required: expected a text'],
    [
      { ...row, instance_id: 'bad', FAIL_TO_PASS: 'none' },
      'FAIL_TO_PASS: expected a list of tests, or the JSON of one in a text',
    ],
    [
      { ...row, instance_id: 'bad', PASS_TO_PASS: '[1]' },
      'PASS_TO_PASS: expected a list of tests, or the JSON of one in a text',
    ],
    [{ ...row, instance_id: 'bad', PASS_TO_PASS: 1 }, 'PASS_TO_PASS: expected a list of tests'],
  ])('%j', (bad, message) => {
    const { tasks } = findTasks(set.write('rows.jsonl', lines(row, bad)));
    const [good, read] = tasks.map(readTask);
    expect(good?.task).toBeDefined();
    expect(read?.issues.map(({ line, path, message }) => [line, `${path}: ${message}`])).toEqual([
      [2, message],
    ]);
  });

  test.each([
    ['{"instance_id": ', { path: '', message: expect.stringContaining('JSON') }],
    ['{"repo": "a"}', { path: 'instance_id', message: 'is required: expected a text' }],
    ['[1]', { path: 'instance_id', message: 'is required: expected a text' }],
    ['{"instance_id": 5}', { path: 'instance_id', message: 'is required: expected a text' }],
    [new Uint8Array([0x7b, 0xff]), { path: '', message: 'is not UTF-8' }],
  ])('a row without an id: %s', (line, issue) => {
    const file = set.write('rows.jsonl', lines(row));
    appendFileSync(file, line);
    appendFileSync(file, `\n${lines({ ...row, instance_id: 'after' })}`);
    const [before, bad, after] = findTasks(file).tasks.map(readTask);
    expect([before?.issues, after?.issues]).toEqual([[], []]);
    expect(bad).toMatchObject({
      found: { id: 'line 2' },
      issues: [{ line: 2, ...issue }],
    });
  });

  test('a second row of the same id', () => {
    const [, second] = findTasks(set.write('rows.jsonl', lines(row, row))).tasks;
    expect(second?.problem).toMatchObject({
      line: 2,
      message: expect.stringMatching(/same id as .*rows\.jsonl:1$/),
    });
  });

  test('a row without tests has nothing to grade with', () => {
    const nothing = { ...row, FAIL_TO_PASS: [], PASS_TO_PASS: '[]' };
    const [found] = findTasks(set.write('rows.jsonl', lines(nothing))).tasks;
    expect(found && taskOf(found).obstacles[0]).toMatchObject({ feature: 'no-tests', line: 1 });
  });

  test('a row that never ends', () => {
    const file = set.write('rows.jsonl', lines(row));
    for (let part = 0; part < 20; part++) appendFileSync(file, 'x'.repeat(1024 ** 2));
    expect(() => findTasks(file)).toThrow(/rows\.jsonl:2:1: is longer than the limit of 16 MiB/);
  });
});

test('thousands of rows take little memory', () => {
  const file = set.write('rows.jsonl', '');
  const text = 'x'.repeat(50_000);
  for (let n = 0; n < 2000; n++)
    appendFileSync(file, lines({ ...row, instance_id: `row-${n}`, problem_statement: text }));
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const { tasks } = findTasks(file);
  expect(tasks).toHaveLength(2000);
  const last = tasks.at(-1);
  expect(last && taskOf(last).id).toBe('row-1999');
  globalThis.gc?.();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(60 * 1024 ** 2);
});

describe('resolved', () => {
  const reading = { failToPass: ['a', 'b'], passToPass: ['c'] };
  const resultsOf = (statuses: Record<string, NamedResult>) => (test: string) => statuses[test];

  test.each([
    [{ a: 'passed', b: 'passed', c: 'passed' }, true, []],
    [{ a: 'passed', b: 'passed', c: 'skipped' }, true, []],
    [{ a: 'passed', b: 'passed', c: 'passed', d: 'failed' }, true, []],
    [{ a: 'passed', b: 'failed', c: 'passed' }, false, ['b']],
    [{ a: 'passed', b: 'skipped', c: 'passed' }, false, ['b']],
    [{ a: 'passed', b: 'passed' }, false, ['c']],
    [{}, false, ['a', 'b', 'c']],
  ] as const)('%j', (statuses, resolved, failed) => {
    expect(resolution(reading, resultsOf(statuses))).toEqual({ resolved, failed, counting: 3 });
  });

  test('by the tests to fix alone in some repositories', () => {
    const statuses = resultsOf({ a: 'passed', b: 'passed', c: 'failed' });
    const resolvedOf = (repo: string) => {
      const named = { ...row, repo, FAIL_TO_PASS: ['a', 'b'], PASS_TO_PASS: ['c'] };
      const [found] = findTasks(set.write(`${repo}.jsonl`, lines(named))).tasks;
      if (!found) throw new Error('nothing found');
      return resolution(taskOf(found).tests?.named as typeof reading, statuses).resolved;
    };
    expect(resolvedOf('markedjs/marked')).toBe(true);
    expect(resolvedOf('org/repo')).toBe(false);
  });

  test('never by no tests', () => {
    const none = { ...reading, failToPass: [], passToPass: [] };
    expect(resolution(none, resultsOf({})).resolved).toBe(false);
  });
});

describe('a row with an environment that the user names', () => {
  const planned = (change: object, setup: Partial<TasksSource>) => {
    const path = set.write('rows.jsonl', lines({ ...row, test_patch: patch, ...change }));
    return planTasks({ path, ...setup }, { except: [], images: {}, keys: undefined });
  };
  const patch = [
    'diff --git a/tests/test_a.py b/tests/test_a.py',
    '--- a/tests/test_a.py',
    '+++ b/tests/test_a.py',
    '@@ -1,2 +1,2 @@',
    ' x',
    '--- a/none',
    '+++ b/none',
    'diff --git a/tests/old.py b/tests/new name.py',
    'similarity index 100%',
    'rename from tests/old.py',
    'rename to tests/new name.py',
    'diff --git a/tests/data.json b/tests/data.json',
    'new file mode 100644',
    '--- /dev/null',
    '+++ b/tests/data.json',
    '@@ -0,0 +1 @@',
    '+{}',
    '',
  ].join('\n');

  test('is a case: tests run in a fresh sandbox with the workspace, and the patch solves it', () => {
    const image = 'my/swe.{docker_id}:{version}';
    const { cases, leftOut } = planned({ instance_id: 'Org__repo-1' }, { image });
    expect(leftOut).toEqual([]);
    const [{ request, local } = {}] = cases;
    expect(request?.variables).toEqual({ instruction: 'It fails.' });
    expect(local?.environment.image?.name).toBe('my/swe.org_1776_repo-1:1.2');
    expect(local?.tests).toMatchObject({
      files: [],
      emptied: ['/logs/verifier'],
      command: ['bash', '-c', "pytest -rA tests/test_a.py 'tests/new name.py'"],
      timeoutMs: 1_800_000,
      reading: {
        kind: 'named-tests',
        parser: 'pytest',
        failToPass: ['t.py::a', 't.py::b'],
      },
      fresh: { brought: { kind: 'workspace', base: 'abc', testPatch: patch } },
    });
    expect(local?.oracle?.files[0]?.path).toBe('/solution/solution.patch');
    expect(local?.oracle?.command.slice(0, 1)).toEqual(['git']);
  });

  test('may be built, with its commit as an argument, and its tests run as the user says', () => {
    set.write('swe/Dockerfile', 'FROM debian\nARG AT\n');
    const build = {
      context: `${set.folder}/swe`,
      dockerfile: 'Dockerfile',
      args: { AT: '{repo}@{base_commit}' },
    };
    const test = {
      parser: 'django' as const,
      command: `run {print} --to {report} \${HOME} {modules}`,
      timeout: 5_000,
    };
    const { local } = planned({}, { build, test }).cases[0] ?? {};
    expect(local?.environment.build).toMatchObject({ args: { AT: 'org/repo@abc' } });
    expect(local?.tests).toMatchObject({
      command: ['bash', '-c', `run {print} --to /logs/verifier/report.xml \${HOME} test_a 'new name'`],
      timeoutMs: 5_000,
      reading: { parser: 'django' },
    });
  });

  test('is told what is wrong with it', () => {
    const outside = patch.replaceAll('tests/test_a.py', '../../etc/passwd');
    const { leftOut } = planned({ test_patch: outside }, { image: 'a' });
    expect(leftOut[0]?.reasons[0]?.message).toMatch(/"..\/..\/etc\/passwd" is no file of the repository/);
    const inGit = patch.replaceAll('tests/test_a.py', '.git/config');
    expect(planned({ test_patch: inGit }, { image: 'a' }).leftOut).toHaveLength(1);
    const unknown = planned({}, { image: 'a:{commit}' });
    expect(unknown.leftOut[0]?.reasons[0]?.message).toBe('tasks.image: {commit} is not known');
  });
});

describe('what test runners print', () => {
  const resultsOf = (parser: keyof typeof logParsers, output: string, names: string[]) => {
    const read = logParsers[parser](output);
    return read.kind === 'none' ? read.problem : names.map((name) => read.results.get(name));
  };

  test('pytest in its short summary', () => {
    const output = [
      '=== PASSES ===',
      'PASSED t.py::printed',
      '\u001b[36m=== short test summary info ===\u001b[0m',
      '\u001b[32mPASSED\u001b[0m t.py::a',
      'PASSED t.py::p[x y]',
      'PASSED t.py::p[x z]',
      'PASSED t.py::q[1 - 2]',
      'FAILED t.py::b - assert 1 == 2',
      'FAILED t.py::q[1 - 3] - assert 1',
      'ERROR t.py::c - fixture',
      'XFAIL t.py::d - not yet',
      'XPASS t.py::e',
      'SKIPPED [1] t.py:3: no',
      'PASSED t.py::twice',
      'FAILED t.py::twice',
      '=== 1 failed in 1s ===',
      'PASSED t.py::after',
    ].join('\r\n');
    const names = ['t.py::a', 't.py::p[x', 't.py::p[x y]', 't.py::q[1 - 2]', 't.py::b', 't.py::q[1'];
    const more = ['t.py::c', 't.py::d', 't.py::e', 't.py::twice', 't.py::printed', 't.py::after', '[1]'];
    expect(resultsOf('pytest', output, [...names, ...more])).toEqual([
      'passed',
      'passed',
      'passed',
      'passed',
      'failed',
      'failed',
      'failed',
      'passed',
      'failed',
      'failed',
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('pytest -v in its lines', () => {
    const output = [
      't.py::a PASSED                            [ 10%]',
      't.py::p[x y] FAILED [ 20%]',
      't.py::s SKIPPED (no reason)               [ 30%]',
      't.py::u PASSED',
      'print PASSED',
    ].join('\n');
    expect(resultsOf('pytest-v', output, ['t.py::a', 't.py::p[x', 't.py::s', 't.py::u', 'print'])).toEqual([
      'passed',
      'failed',
      'skipped',
      'passed',
      undefined,
    ]);
  });

  test('Django and unittest, with what the tests print between name and result', () => {
    const output = [
      'test_a (m.C) ... ok',
      'test_b (m.C)',
      'It has a description. ... ok',
      'test_c (m.C) ... Testing against Django',
      'ok',
      'test_d (m.C) ... FAIL',
      "test_e (m.C) ... skipped 'no'",
      'test_f (m.C) ... printed',
      'ERROR',
      'test_g (m.C) ... expected failure',
      'test_h (m.C) ... unexpected success',
      'test_i (m.C) ... ',
      '',
      'ERROR: test_j (m.C)',
    ].join('\n');
    const names = [...'acdefghij'].map((letter) => `test_${letter} (m.C)`);
    expect(resultsOf('django', output, [...names, 'It has a description.'])).toEqual([
      'passed',
      'passed',
      'failed',
      'skipped',
      'failed',
      'passed',
      'failed',
      undefined,
      'failed',
      'passed',
    ]);
  });

  test.each(['pytest', 'pytest-v', 'django'] as const)('nothing, which is no result: %s', (parser) => {
    expect(resultsOf(parser, 'Segmentation fault\n', [])).toBe('the output names no test with its result');
  });
});
