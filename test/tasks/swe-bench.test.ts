import { appendFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findTasks } from '../../src/tasks/find-tasks.ts';
import { readTask } from '../../src/tasks/read-task.ts';
import { resolution } from '../../src/tasks/swe-bench/resolved.ts';
import { openTaskSet, type TaskSetFolder, taskOf } from './task-set.ts';

let set: TaskSetFolder;
beforeEach(() => {
  set = openTaskSet();
});
afterEach(() => set[Symbol.dispose]());

const row = {
  instance_id: 'org__repo-1',
  repo: 'org/repo',
  base_commit: 'abc',
  problem_statement: 'It fails.',
  patch: 'diff a',
  test_patch: 'diff b',
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
    format: 'swe-bench',
    place: file,
    instruction: 'It fails.',
    environment: { source: { kind: 'unnamed' } },
    solution: { kind: 'patch', patch: 'diff a' },
    verifier: {
      mode: 'separate',
      reading: {
        kind: 'named-tests',
        testPatch: 'diff b',
        failToPass: ['t.py::a', 't.py::b'],
        passToPass: ['t.py::c'],
      },
    },
    metadata: { repo: 'org/repo', base_commit: 'abc', version: '1.2' },
  });
  expect(task.obstacles.map(({ feature }) => feature)).toEqual(['unnamed-environment', 'named-tests']);
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
  expect(tasks.map((found) => taskOf(found).instruction.length)).toEqual([9, 1_000_000, 9]);
  const [note] = tasks.map((found) => taskOf(found).notes)[2] ?? [];
  expect(note).toMatchObject({ kind: 'unknown-key', line: 5, path: 'extra' });
});

describe('a bad row is told with its line, and the others are read', () => {
  test.each([
    [{ ...row, instance_id: 'bad', base_commit: undefined }, 'base_commit: is required: expected string'],
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
    expect(good?.kind).toBe('task');
    if (read?.kind !== 'unreadable') throw new Error('it is readable');
    expect(read.issues.map(({ line, path, message }) => [line, `${path}: ${message}`])).toEqual([
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
    expect([before?.kind, after?.kind]).toEqual(['task', 'task']);
    expect(bad).toMatchObject({
      kind: 'unreadable',
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
  const reading = {
    kind: 'named-tests' as const,
    testPatch: '',
    failToPass: ['a', 'b'],
    passToPass: ['c'],
  };
  const results = (statuses: Record<string, 'passed' | 'failed'>) => new Map(Object.entries(statuses));

  test.each([
    [{ a: 'passed', b: 'passed', c: 'passed' }, true, []],
    [{ a: 'passed', b: 'passed', c: 'passed', d: 'failed' }, true, []],
    [{ a: 'passed', b: 'failed', c: 'passed' }, false, ['b']],
    [{ a: 'passed', b: 'passed' }, false, ['c']],
    [{}, false, ['a', 'b', 'c']],
  ] as const)('%j', (statuses, resolved, failed) => {
    expect(resolution(reading, results(statuses), 'org/repo')).toEqual({ resolved, failed });
  });

  test('by the tests to fix alone in some repositories', () => {
    const statuses = results({ a: 'passed', b: 'passed', c: 'failed' });
    expect(resolution(reading, statuses, 'markedjs/marked').resolved).toBe(true);
    expect(resolution(reading, statuses, 'org/repo').resolved).toBe(false);
  });

  test('never by no tests', () => {
    const none = { ...reading, failToPass: [], passToPass: [] };
    expect(resolution(none, results({}), 'org/repo').resolved).toBe(false);
  });
});
