import { describe, expect, test } from 'vitest';
import { logParsers, printedTestParsers } from '../../src/tasks/swe-bench/log-parsers.ts';
import { junitElements } from '../../src/validate/formats/junit.ts';

const summary = '=== short test summary info ===\n';
const length = 1_000_000;
const parsers = {
  ...logParsers,
  'of pytest': printedTestParsers.pytest,
  'of swebench': printedTestParsers.swebench,
};

/** An expression that looks back for each character takes hours for these. */
describe.each(Object.entries(parsers))('the parser %s reads in seconds', (_, parse) => {
  test.each([
    ['blanks', 'a::b', ' '],
    ['colons', '', ':'],
    ['results with reasons', 'a::b', ' PASSED ('],
    ['results with shares', 'a::b', ' PASSED [1%'],
    ['dashes', `${summary}FAILED a`, ' - '],
    ['dashes in parameters', `${summary}XFAIL a[`, ' - '],
    ['equals signs', summary, '='],
    ['dots', 'a', ' ... '],
    ['results of unittest', 'a ... ', ' skipped'],
    ['titles of a terminal', '', '\u001b]0;'],
    ['colours', '', '\u001b['],
    ['parts of colours', '\u001b[', '0;'],
    ['lines', summary, 'FAILED a\n'],
  ])('%s', { timeout: 20_000 }, (_what, begin, repeated) => {
    const output = `${begin}${repeated.repeat(length / repeated.length)}x`;
    expect(parse(output).kind).toMatch(/^(none|results)$/);
  });
});

test('a report that is no XML is told in a few words', () => {
  const read = junitElements(`<a>${'<'.repeat(length)}`);
  expect('problem' in read && read.problem).toMatch(/^line 1: Tag '<{190,}… \(\d+ characters\)$/);
});

test('results are read without colours, and by the first result of a line', () => {
  const read = logParsers['pytest-v'](
    [
      '\u001b[1mt/a.py::b\u001b[0m \u001b]0;title\u0007\u001b[32mPASSED\u001b[0m\u001b[32m [ 10%]\u001b[m',
      't/a.py::c[PASSED x] FAILED [100%]',
      't/a.py::d SKIPPED (no PASSED here) [ 50%]',
      't/a.py::e PASSED and more',
      'no test PASSED',
      't/a.py:: PASSED',
    ].join('\n'),
  );
  const of = (name: string) => (read.kind === 'results' ? read.results.get(`t/a.py::${name}`) : read.problem);
  expect(['b', 'c[PASSED x]', 'd', 'e', ''].map(of)).toEqual([
    'passed',
    'failed',
    'skipped',
    undefined,
    undefined,
  ]);
});
