import { describe, expect, test } from 'vitest';
import { printedTestParsers } from '../../src/tasks/swe-bench/log-parsers.ts';
import { eachTaskSet, set } from './each-task-set.ts';
import { issuesOf, notesOf, obstaclesOf, taskOf } from './task-set.ts';

eachTaskSet();

test('the smallest task has the defaults of the format, and runs here', () => {
  const found = set.terminalBench('small');
  expect(taskOf(found)).toMatchObject({
    id: 'small',
    variables: { instruction: 'Write a file.' },
    environment: {
      build: { context: found.place, dockerfile: `${found.place}/Dockerfile` },
      timeouts: { harness: 360_000 },
    },
    tests: {
      in: 'same',
      timeout: 60_000,
      files: { '/tests/run-tests.sh': `${found.place}/run-tests.sh` },
      command: ['bash', '/tests/run-tests.sh'],
      prints: 'pytest',
    },
    solution: undefined,
    obstacles: [],
  });
  expect(notesOf(found)).toEqual(['open-network task.yaml:1:1']);
});

test('every key is read', () => {
  const found = set.terminalBench('full', {
    'task.yaml': `
# BENCHMARK DATA, canary 1
instruction: |
  Do it.
author_name: A
author_email: a@example.com
difficulty: hard
category: games
tags: [one, two]
parser_name: swebench
max_agent_timeout_sec: 900.5
max_test_timeout_sec: 30
run_tests_in_same_shell: false
disable_asciinema: true
estimated_duration_sec: null
expert_time_estimate_min: 3
junior_time_estimate_min: 30
`,
    'docker-compose.yaml': `
services:
  client:
    build: { context: ., dockerfile: Dockerfile, args: { A: 1 } }
    image: \${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: \${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: ["sh", "-c", "sleep infinity"]
    working_dir: /app
    environment:
      - TEST_DIR=\${T_BENCH_TEST_DIR}
    volumes:
      - \${T_BENCH_TASK_LOGS_PATH}:\${T_BENCH_CONTAINER_LOGS_PATH}
      - \${T_BENCH_TASK_AGENT_LOGS_PATH}:\${T_BENCH_CONTAINER_AGENT_LOGS_PATH}
    deploy: { resources: { limits: { cpus: '1', memory: 512m } } }
`,
    'tests/test_outputs.py': '',
    'solution.sh': 'true\n',
  });
  const task = taskOf(found);
  expect(task.obstacles).toEqual([]);
  expect(notesOf(found)).toEqual(['open-network task.yaml:3:1']);
  expect(task).toMatchObject({
    variables: { instruction: 'Do it.\n' },
    tags: ['one', 'two'],
    environment: {
      build: { args: { A: '1' } },
      workdir: '/app',
      env: { TEST_DIR: '/tests' },
      resources: { cpus: 1, memory: 512 * 1024 ** 2 },
      timeouts: { harness: 900_500 },
    },
    tests: {
      timeout: 30_000,
      files: { '/tests/run-tests.sh': `${found.place}/run-tests.sh` },
      prints: 'swebench',
    },
    placed: [{ from: `${found.place}/tests`, to: '/tests' }],
    solution: { command: ['bash', '/oracle/solution.sh'] },
  });
});

const yaml = (more: string) => ({ 'task.yaml': `instruction: Do it.\ndifficulty: easy\n${more}\n` });

test.each([
  [yaml('parser_name: mlebench'), 'unknown-parser task.yaml:3:1'],
  [yaml('descriptions: [{ key: base, description: Do that. }]'), 'older-instruction task.yaml:3:1'],
  [yaml('env_name: shared'), 'shared-environment task.yaml:3:1'],
  [yaml('max_agent_timout_sec: 5'), 'mistyped-key task.yaml:3:1'],
  [{ 'run-tests.sh': null }, 'no-tests run-tests.sh:1:1'],
  [{ 'solution.yaml': '- command: ls\n  min_timeout_sec: 1\n' }, 'typed-solution solution.yaml:1:1'],
  [
    { 'docker-compose.yaml': 'services:\n  client:\n    build: .\n    volumes: ["./:/app"]\n' },
    'bind-mount docker-compose.yaml:4:15',
  ],
])('%j is an obstacle', (files, obstacle) => {
  expect(obstaclesOf(set.terminalBench('task', files))).toContain(obstacle);
});

test('tests in the shell of the agent run in one of their own, and a note says so', () => {
  const found = set.terminalBench('task', yaml('run_tests_in_same_shell: true'));
  expect(notesOf(found)).toContain('tests-in-same-shell task.yaml:3:1');
  expect(obstaclesOf(found)).toEqual([]);
});

test.each([
  [{ 'task.yaml': 'instruction: Do it.\n' }, /^task\.yaml:1:1: difficulty: is required/],
  [{ 'task.yaml': 'difficulty: easy\n' }, /^task\.yaml:1:1: instruction: is required/],
  [yaml('max_test_timeout_sec: soon'), /^task\.yaml:3:1: max_test_timeout_sec: expected a number/],
  [{ 'task.yaml': 'a: [\n' }, /^task\.yaml:2:1: /],
  [{ 'docker-compose.yaml': null }, /^docker-compose\.yaml:1:1: is missing$/],
  [
    { 'docker-compose.yaml': 'services: { other: { image: a } }' },
    /^docker-compose\.yaml:1:1: services: has no service client/,
  ],
  [
    { Dockerfile: null },
    /^docker-compose\.yaml:3:5: services\.client\.build: there is no file .*Dockerfile$/,
  ],
])('%j is told with its place', (files, issue) => {
  expect(issuesOf(set.terminalBench('task', files))).toEqual([expect.stringMatching(issue)]);
});

describe('the output of pytest', () => {
  const summary = (...lines: string[]) =>
    ['== test session starts ==', '=== short test summary info ===', ...lines, '== 1 in 0.1s =='].join('\n');
  const statuses = (output: string) => {
    const parsed = printedTestParsers.pytest(output);
    return parsed.kind === 'results' ? Object.fromEntries(parsed.results) : parsed.problem;
  };

  test('has results in its short summary', () => {
    const output = summary(
      'PASSED t.py::test_a',
      'PASSED t.py::test_b[x y - z]',
      'FAILED t.py::test_c - AssertionError: a - b',
      'ERROR t.py::test_d - fixture',
      'ERROR t.py',
      'SKIPPED [1] t.py:3: not here',
      'XFAIL t.py::test_e - known',
      'XPASS t.py::test_f',
    );
    expect(statuses(output)).toEqual({
      't.py::test_a': 'passed',
      't.py::test_b[x y - z]': 'passed',
      't.py::test_c': 'failed',
      't.py::test_d': 'failed',
      't.py': 'failed',
      '[1] t.py:3: not here': 'passed',
      't.py::test_e - known': 'passed',
      't.py::test_f': 'failed',
    });
  });

  test('may have colours and carriage returns', () => {
    const output = summary('\u001b[32mPASSED\u001b[0m t.py::\u001b[1mtest_a\u001b[0m').replaceAll(
      '\n',
      '\r\n',
    );
    expect(statuses(output)).toEqual({ 't.py::test_a': 'passed' });
  });

  test('of several runs has each, and a failure stays one', () => {
    expect(statuses(`${summary('FAILED a - x', 'PASSED b')}\n${summary('PASSED a')}`)).toEqual({
      a: 'failed',
      b: 'passed',
    });
  });

  test.each([
    ['', 'the output of pytest has no "short test summary info"'],
    ['PASSED t.py::test_a\n1 passed', 'the output of pytest has no "short test summary info"'],
    [summary(), 'the output of pytest names no test in its summary'],
    [summary('no tests ran'), 'the output of pytest names no test in its summary'],
  ])('without a result is no pass: %j', (output, problem) => {
    expect(statuses(output)).toBe(problem);
  });

  test('is read in one pass, however long a line is', () => {
    const begun = performance.now();
    statuses(`${'='.repeat(2_000_000)}x\n${summary(`FAILED ${' - '.repeat(500_000)}`)}`);
    expect(performance.now() - begun).toBeLessThan(20_000);
  });
});

describe('the output of SWE-bench in Terminal-Bench', () => {
  const parse = printedTestParsers.swebench;
  const results = (word: string) => `x\nSWEBench results starts here\n${word}\nSWEBench results ends here\n`;

  test.each([
    ['PASSED', 'passed'],
    ['FAILED', 'failed'],
    ['PASSED\nFAILED', 'failed'],
  ])('%j', (word, status) => {
    expect(parse(results(word))).toEqual({ kind: 'results', results: new Map([['resolved', status]]) });
  });

  test.each(['', 'PASSED', results('NOT PASSED'), 'SWEBench results starts here\nPASSED\n'])(
    'without a result is no pass: %j',
    (output) => {
      expect(parse(output).kind).toBe('none');
    },
  );
});
