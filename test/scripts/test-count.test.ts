import { describe, expect, test } from 'vitest';
import { countTests, summaryLine } from '../../scripts/test-count.ts';

const report = (numPassedTests: number, numFailedTests: number) =>
  JSON.stringify({ numPassedTests, numFailedTests });

describe('the closing line of npm test', () => {
  test("has vitest's own counts", () => {
    expect(summaryLine(countTests(report(12, 0), 0))).toBe('12 passed, 0 failed');
    expect(summaryLine(countTests(report(12, 3), 1))).toBe('12 passed, 3 failed');
  });

  test('never says that nothing failed when no test ran', () => {
    expect(countTests(report(0, 0), 0)).toEqual({ passed: 0, failed: 1 });
    expect(countTests(undefined, 0)).toEqual({ passed: 0, failed: 1 });
  });

  test('never says that nothing failed when vitest failed', () => {
    expect(countTests(report(12, 0), 1), 'a test file that does not load').toEqual({ passed: 12, failed: 1 });
  });
});
