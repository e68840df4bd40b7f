import { describe, expect, test } from 'vitest';
import type { Validation } from '../../src/contract/validation.ts';
import { failedOutputOf, failuresOf } from '../../src/record/failures.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';

function result(found: Partial<TrialRecord>): TrialRecord {
  return {
    verdict: 'failed',
    startedAt: 0,
    finishedAt: 1,
    phases: [],
    modelUnmeasured: false,
    ...found,
    version: recordVersion,
  };
}

const step = (command: string, exitCode: number, output = '') => ({
  command,
  exitCode,
  output,
  outputTruncated: false,
});

describe('a failed trial says why:', () => {
  test.each([
    ['', 'verify: npm test exited 1'],
    ['one\ntwo\n\n', 'verify: npm test exited 1: two'],
    [
      'ok 1\nAssertionError [ERR_ASSERTION]: 1 !== 2\n    at test.js:3\n',
      'verify: npm test exited 1: AssertionError [ERR_ASSERTION]: 1 !== 2',
    ],
    ['collected 1 item\nE   ValueError: no\n1 failed in 0.1s', 'verify: npm test exited 1: ValueError: no'],
    [
      "node:assert:152\n  throw new AssertionError(obj);\n\nAssertionError [ERR_ASSERTION]: they differ:\n\n'a' !== 'b'\n",
      "verify: npm test exited 1: AssertionError [ERR_ASSERTION]: they differ: 'a' !== 'b'",
    ],
    [
      "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n+ actual - expected\n\n+ '1.050KB'\n- '1.05KB'\n      ^\n",
      "verify: npm test exited 1: AssertionError [ERR_ASSERTION]: Expected values to be strictly equal: + '1.050KB' - '1.05KB'",
    ],
    ['FAIL a_test.go:3\nexit status 1', 'verify: npm test exited 1: FAIL a_test.go:3'],
    ['x'.repeat(300), `verify: npm test exited 1: ${'x'.repeat(200)}…`],
  ])('a verify step that printed %j', (output, expected) => {
    const verifySteps = [step('true', 0, 'Error: of no account'), step('npm test', 1, output)];
    expect(failuresOf(result({ verifySteps }))).toEqual([expected]);
  });

  test.each([
    [
      'E   assert 1 == 2\nFAILED test_sum.py::test_adds - assert 1 == 2\nFAILED test_sum.py::test_b[x y] - no\n2 failed',
      'verify: t exited 1: test_sum.py::test_adds and 1 more: assert 1 == 2',
    ],
    [
      '✔ works (1ms)\n✖ adds two (1.2ms)\n\n✖ failing tests:\n\n✖ adds two (1.2ms)\n  AssertionError: 1 !== 2\n',
      'verify: t exited 1: adds two: AssertionError: 1 !== 2',
    ],
    ['ok 1 - a\n    not ok 2 - inner\nnot ok 2 - outer # TODO\n', 'verify: t exited 1: not ok 2 - inner'],
    [
      '--- FAIL: TestSum (0.00s)\n    sum_test.go:9: got 3\nFAIL\n',
      'verify: t exited 1: TestSum: sum_test.go:9: got 3',
    ],
    [
      "test tests::adds ... FAILED\nthread 'tests::adds' panicked\nerror: test failed\n",
      'verify: t exited 1: tests::adds: error: test failed',
    ],
    [
      'FAIL: test_sum (tests.TestSum)\nAssertionError: 3 != 4\n',
      'verify: t exited 1: test_sum (tests.TestSum): AssertionError: 3 != 4',
    ],
    [
      ' FAIL  sum.test.ts > adds\nAssertionError: expected 3 to be 4\n',
      'verify: t exited 1: sum.test.ts > adds: AssertionError: expected 3 to be 4',
    ],
  ])('a test runner that printed %j by its failed test', (output, expected) => {
    expect(failuresOf(result({ verifySteps: [step('t', 1, output)] }))).toEqual([expected]);
  });

  test.each([
    [
      'node',
      'ƒ Expected values to be loosely deep-equal:\n  \n  1\n  \n  should loosely deep-equal\n  \n  2\n      at a.js:5:23 {\n    actual: 1',
      'ƒ Expected values to be loosely deep-equal: 1 should loosely deep-equal 2',
    ],
    [
      'node',
      'ƒ Expected "actual" not to be strictly deep-equal to:\n\n{\n  a: 1\n}\n    at a.js:5:23\n',
      'ƒ Expected "actual" not to be strictly deep-equal to: { a: 1 }',
    ],
    [
      'node',
      'ƒ Got unwanted exception.\nActual message: "bad"\n    at a.js:1:2\n',
      'ƒ Got unwanted exception. Actual message: "bad"',
    ],
    [
      'TAP',
      "not ok 1 - adds\n  ---\n  type: 'test'\n  error: |-\n    Expected values to be loosely deep-equal:\n    \n    1\n    \n    should loosely deep-equal\n    \n    2\n  code: 'ERR_ASSERTION'\n",
      'adds: Expected values to be loosely deep-equal: 1 should loosely deep-equal 2',
    ],
    [
      'TAP',
      "not ok 1 - adds\n  ---\n  error: 'Missing expected exception.'\n",
      "adds: 'Missing expected exception.'",
    ],
    [
      'pytest',
      "E   AssertionError: assert 'x' in 'abc'\nE    +  where 'abc' = f('abc')\n\ntest_a.py:5: AssertionError\n",
      "AssertionError: assert 'x' in 'abc' +  where 'abc' = f('abc')",
    ],
    [
      'go',
      '--- FAIL: TestSum (0.00s)\n    sum_test.go:4: mismatch:\n         got: 1\n        want: 2\nFAIL\nexit status 1\n',
      'TestSum: sum_test.go:4: mismatch: got: 1 want: 2',
    ],
    [
      'testify',
      '    a_test.go:10: \n        \tError Trace:\t/x/a_test.go:10\n        \tError:\tNot equal: \n        \t\texpected: 2\n        \t\tactual  : 1\n',
      'Error:\tNot equal: expected: 2 actual  : 1',
    ],
    [
      'jest',
      '  ● sum › adds\n\n    expect(received).toBe(expected)\n\n    Expected: 3\n    Received: 2\n\n    > 4 |   expect(2).toBe(3);\n',
      'sum › adds: expect(received).toBe(expected) Expected: 3 Received: 2',
    ],
    [
      'cargo',
      "thread 'sums' panicked at src/lib.rs:10:9:\nassertion `left == right` failed\n  left: 1\n right: 2\nnote: run with\n",
      "thread 'sums' panicked at src/lib.rs:10:9: assertion `left == right` failed left: 1 right: 2",
    ],
  ])('the whole message of %s on one line: %j', (_, output, expected) => {
    const [whole, said] = [output, expected].map((one) =>
      one.replace('ƒ', 'AssertionError [ERR_ASSERTION]:'),
    );
    expect(failuresOf(result({ verifySteps: [step('t', 1, whole)] }))).toEqual([
      `verify: t exited 1: ${said}`,
    ]);
  });

  test('a message that is too long by its beginning', () => {
    const long = `AssertionError: not equal to:\n\n${'[1,\n'.repeat(90)}\n    at a.js:1:2\n`;
    const [reason = ''] = failuresOf(result({ verifySteps: [step('t', 1, long)] }));
    expect(reason).toMatch(/^verify: t exited 1: AssertionError: not equal to: \[1, .*…$/);
  });

  test('with the last lines that its failed checks printed', () => {
    const long = Array.from({ length: 60 }, (_, index) => `line ${index}`).join('\n');
    const verifySteps = [step('a', 0, 'fine'), step('b', 1, long)];
    const validations = [
      { id: 'v', index: 0, name: 'v', exitCode: 1, output: { text: 'got 3' }, error: { text: 'no\n' } },
    ];
    const cause = { kind: 'task', phase: 'prepare', message: 'no', output: 'E: no package\n' } as const;
    const printed = failedOutputOf(result({ verifySteps, validations, cause }));
    expect(printed.split('\n')).toEqual([
      ...Array.from({ length: 40 }, (_, index) => `line ${index + 20}`),
      '',
      'got 3',
      'no',
      '',
      'E: no package',
    ]);
  });

  test('a step of several lines by its first', () => {
    const verifySteps = [step('python3 << END\nexit(3)\nEND', 3)];
    expect(failuresOf(result({ verifySteps }))).toEqual(['verify: python3 << END … exited 3']);
  });

  test('a long command by its beginning', () => {
    const verifySteps = [step(`node -e "${'x'.repeat(200)}"`, 1, 'Error: no')];
    expect(failuresOf(result({ verifySteps }))).toEqual([
      `verify: node -e "${'x'.repeat(51)}… exited 1: Error: no`,
    ]);
  });

  test('validations, and judgments below their threshold', () => {
    const validations = [
      { id: 'a', index: 0, name: 'holds', exitCode: 0 },
      { id: 'b', index: 1, name: 'adds up', exitCode: 1, message: '3 is not 4' },
    ];
    const judgments = [
      { name: 'good', score: 0.7, threshold: 0.7 },
      { name: 'shown', score: 0.1 },
      { name: 'short', score: 0.4, threshold: 0.7, reason: 'It rambles.' },
      { name: 'clear', threshold: 0.5 },
    ];
    expect(failuresOf(result({ validations, judgments }))).toEqual([
      'validation "adds up": 3 is not 4',
      'judgment "short": 0.4 < 0.7: It rambles.',
      'judgment "clear": no score, needs 0.5',
    ]);
  });

  test('the tests of a case, by what they printed, and their reward once', () => {
    const text = 'ok 1 - adds\nnot ok 2 - keeps prototypes apart\n';
    const value = { text, truncated: false, format: 'text', state: 'captured' } as const;
    const tests = { id: 't', index: 0, name: 'tests', kind: 'tests', exitCode: 1 } as const;
    const message = 'reward is 0, below 1';
    const validations = [{ ...tests, message, logs: [{ index: 0, at: 0, level: 'stdout', value }] }];
    const judgments = [{ name: 'reward', evaluator: 'tests', score: 0, threshold: 1 }];
    expect(failuresOf(result({ validations, judgments }))).toEqual([
      'validation "tests": reward is 0, below 1: not ok 2 - keeps prototypes apart',
    ]);
    expect(failedOutputOf(result({ validations, judgments }))).toBe(text.trim());
  });
});

/** A pattern that reads a line again from each of its places takes minutes for these. */
const megabyte = 2 ** 20;
test.each([
  ['underscores', '_'.repeat(megabyte)],
  ['names of errors', 'Error.'.repeat(megabyte / 6)],
  ['spaces', ' '.repeat(megabyte)],
  ['spaces after E', `E${' '.repeat(megabyte)}`],
  ['colons', `Error${':'.repeat(megabyte)}`],
  ['lines of nothing', '\n'.repeat(megabyte)],
  ['lines of almost an error', 'x.Error('.concat('\n').repeat(megabyte / 9)],
  ['parentheses', `Error${'('.repeat(megabyte)}`],
])('%s in the output of a failed step take no time', (_, output) => {
  const verifySteps = [{ command: output, exitCode: 1, output, outputTruncated: false }];
  expect(failuresOf(result({ verifySteps }))[0]?.length).toBeLessThan(1_000);
});

test('what Offsite itself found comes first: then the other checks prove nothing', () => {
  const validation = (kind: string, name: string, message: string) =>
    ({ id: 'v', index: 0, name, kind, status: 'failed', exitCode: 1, message }) as Validation;
  const found = result({
    verifySteps: [step('npm test', 1)],
    validations: [
      validation('code', 'size', 'too large'),
      validation('protected', 'protected files', 'changed'),
    ],
  });
  expect(failuresOf(found)).toEqual([
    'validation "protected files": changed',
    'validation "size": too large',
    'verify: npm test exited 1',
  ]);
});

describe('a failed trial says how its harness ended:', () => {
  const endings: [Partial<TrialRecord>, string | undefined][] = [
    [{ harness: { ended: 'exited', exitCode: 0 } }, undefined],
    [
      { harness: { ended: 'exited', exitCode: 2 }, harnessOutput: 'Error: no\n' },
      'harness: exited 2: Error: no',
    ],
    [{ harness: { ended: 'timed-out', afterMs: 60_400 } }, 'harness: ended after 60 s: its time was up'],
    [{ harness: { ended: 'agent-failed', message: 'gave up\nat once' } }, 'harness: gave up …'],
    [{ harness: { ended: 'out-of-memory' } }, 'harness: the sandbox ran out of memory'],
    [{ verdict: 'passed', harness: { ended: 'exited', exitCode: 2 } }, undefined],
    [
      {
        harness: { ended: 'exited', exitCode: 2 },
        cause: { kind: 'agent', phase: 'harness', message: 'exited 2' },
      },
      undefined,
    ],
  ];
  test.each(endings)('%j', (found, expected) => {
    const verifySteps = [step('test -f x', 1)];
    const [, ending] = failuresOf(result({ verifySteps, ...found }));
    expect(ending).toBe(expected);
  });

  test('with the command of a script, and what it printed', () => {
    const command = 'node /opt/agent/main.mjs "$(cat "$OFFSITE_PROMPT_FILE")"';
    const output = 'node:internal\n  throw err;\n\nError: Cannot find module\n';
    const entry = { _tag: 'command' as const, command, output, outputTruncated: false, exitCode: 1 };
    const found = failuresOf(
      result({
        harness: { ended: 'exited', exitCode: 1 },
        harnessTellsCommands: false,
        trajectory: [{ ...entry, startedAtMillis: 0, finishedAtMillis: 1 }],
      }),
    );
    expect(found).toEqual([`harness: ${command} exited 1: Error: Cannot find module`]);
  });
});
