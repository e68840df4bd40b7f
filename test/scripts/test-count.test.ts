import { describe, expect, test } from 'vitest';
import {
  countTests,
  type FileResult,
  filesToRerun,
  mergeReports,
  summaryLine,
  unsteadyTests,
} from '../../scripts/test-count.ts';

function file(name: string, passed: number, failed: number): FileResult {
  const results = (count: number, status: 'passed' | 'failed') =>
    Array.from({ length: count }, (_, i) => ({
      fullName: `${status} ${i}`,
      status,
      failureMessages: status === 'failed' ? ['Error: why\n    at somewhere'] : [],
    }));
  return {
    name,
    status: failed > 0 ? 'failed' : 'passed',
    startTime: 0,
    endTime: 0,
    assertionResults: [...results(passed, 'passed'), ...results(failed, 'failed')],
  };
}

const report = (...testResults: FileResult[]) => ({ testResults });

describe('the closing line of npm test', () => {
  test("has vitest's own counts", () => {
    expect(summaryLine(countTests(report(file('a', 12, 0)), 0))).toBe('12 passed, 0 failed');
    expect(summaryLine(countTests(report(file('a', 2, 0), file('b', 10, 3)), 1))).toBe('12 passed, 3 failed');
  });

  test('never says that nothing failed when no test ran', () => {
    expect(countTests(report(), 0)).toEqual({ passed: 0, failed: 1 });
    expect(countTests(undefined, 0)).toEqual({ passed: 0, failed: 1 });
  });

  test('never says that nothing failed when vitest failed', () => {
    const counted = countTests(report(file('a', 12, 0)), 1);
    expect(counted, 'a test file that does not load').toEqual({ passed: 12, failed: 1 });
  });
});

describe('a second run of the few files that failed', () => {
  const first = report(file('a', 5, 0), file('b', 2, 1), file('c', 1, 1));

  test('is asked for where few failed, and not where many did', () => {
    expect(filesToRerun(first)).toEqual(['b', 'c']);
    const many = Array.from({ length: 7 }, (_, i) => file(String(i), 1, 1));
    expect(filesToRerun(report(...many))).toEqual([]);
    expect(filesToRerun(undefined)).toEqual([]);
  });

  test('counts in place of the first, and what failed only the first time is told', () => {
    const merged = mergeReports(first, report(file('b', 3, 0), file('c', 1, 1)));
    expect(countTests(merged, 1)).toEqual({ passed: 9, failed: 1 });
    expect(unsteadyTests(first, merged)).toEqual(['b > failed 0: Error: why']);
  });

  test('tells of a file that did not load the first time', () => {
    const unloaded = report({ ...file('a', 0, 1), assertionResults: [] }, file('b', 1, 0));
    const merged = mergeReports(unloaded, report(file('a', 4, 0)));
    expect(countTests(merged, 0)).toEqual({ passed: 5, failed: 0 });
    expect(unsteadyTests(unloaded, merged)).toEqual(['a: did not load, or a hook failed']);
  });
});
