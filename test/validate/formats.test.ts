import { describe, expect, test } from 'vitest';
import { readTestReport } from '../../src/validate/formats/test-report.ts';

describe('TAP', () => {
  test('gives each top-level result with its message, and skipped ones as passed', async () => {
    const text = `TAP version 13
# Subtest: outer
    # Subtest: inner
    ok 1 - inner
    1..1
ok 1 - outer
not ok 2 - sum \\# of all
  ---
  duration_ms: 12.4
  message: 'expected 3'
  ...
ok 3 - later # SKIP no network
not ok 4 - someday # TODO not yet
1..4
`;
    expect(await readTestReport(text)).toMatchObject({
      format: 'tap',
      tests: [
        { name: 'outer', passed: true },
        { name: 'sum # of all', passed: false, message: 'expected 3', durationMs: 12 },
        { name: 'later', passed: true, message: 'skip: no network' },
        { name: 'someday', passed: true, message: 'todo: not yet' },
      ],
    });
  });

  test.each([
    ['ends before its plan does', '1..3\nok 1 - a\nok 2 - b\n', '3 tests were planned, 2 are in the report'],
    ['has no plan', 'ok 1 - a\n', 'the report has no plan'],
    ['bails out', '1..1\nok 1 - a\nBail out! no database\n', 'Bail out! no database'],
  ])('that %s does not pass', async (_, text, message) => {
    expect(await readTestReport(text)).toMatchObject({
      tests: expect.arrayContaining([{ name: 'plan', passed: false, message }]),
    });
  });
});

describe('JUnit XML', () => {
  test('gives the cases of all suites, however deep', async () => {
    const text = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="a"><testcase classname="pkg.T" name="one &amp; two" time="0.012"/>
<testsuite name="b"><testcase name="three"><failure message="expected 1 &lt; 0">trace
here</failure></testcase><testcase name="four"><skipped/></testcase>
<testcase name="five"><error><![CDATA[boom <here>]]></error></testcase></testsuite></testsuite></testsuites>`;
    const report = await readTestReport(text);
    expect(report).toMatchObject({ format: 'junit' });
    expect(
      report && 'tests' in report && report.tests.toSorted((a, b) => a.name.localeCompare(b.name)),
    ).toMatchObject([
      { name: 'five', passed: false, message: 'boom <here>' },
      { name: 'four', passed: true, message: 'skipped: ' },
      { name: 'pkg.T > one & two', passed: true, durationMs: 12 },
      { name: 'three', passed: false, message: 'expected 1 < 0', detail: 'trace\nhere' },
    ]);
  });

  test('does not expand what a document defines for itself', async () => {
    const text = `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&x;"/></testsuite>`;
    expect(await readTestReport(text)).toMatchObject({ problem: expect.stringContaining('ntit') });
  });

  test('that is cut off is no report', async () => {
    expect(await readTestReport('<testsuite><testcase name="a">')).toMatchObject({
      format: 'junit',
      problem: expect.any(String),
    });
  });
});

test('a time before zero is not known', async () => {
  const junit = await readTestReport(
    '<?xml version="1.0"?>\n<testsuite><testcase name="a" time="-1"/></testsuite>',
  );
  const tests = [{ name: 'a', status: 'passed', duration: -1 }];
  const ctrf = await readTestReport(JSON.stringify({ results: { tool: { name: 'x' }, tests } }));
  for (const report of [junit, ctrf])
    expect(report && 'tests' in report && report.tests).toEqual([{ name: 'a', passed: true }]);
});

describe('CTRF', () => {
  test('gives each test', async () => {
    const tests = [
      { name: 'a', status: 'passed', duration: 3 },
      { name: 'b', status: 'failed', duration: 4, message: 'no', trace: 'at b', suite: ['s', 't'] },
      { name: 'c', status: 'pending', duration: 0 },
      { name: 'd', status: 'other', duration: 0 },
    ];
    expect(await readTestReport(JSON.stringify({ results: { tool: { name: 'x' }, tests } }))).toEqual({
      format: 'ctrf',
      tests: [
        { name: 'a', passed: true, durationMs: 3 },
        { name: 's > t > b', passed: false, message: 'no', durationMs: 4, detail: 'at b' },
        { name: 'c', passed: true, message: 'pending', durationMs: 0 },
        { name: 'd', passed: false, durationMs: 0 },
      ],
    });
  });

  test('of another shape cannot be read', async () => {
    expect(await readTestReport('{"results": {"tests": [{"name": 1}]}}')).toMatchObject({
      problem: expect.stringContaining('name'),
    });
  });
});

test.each(['', 'all is well', '{"a": 1}', '{not json', 'okay then'])('%j is no report', async (text) => {
  expect(await readTestReport(text)).toBeUndefined();
});
