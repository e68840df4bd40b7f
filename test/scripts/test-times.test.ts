import { expect, test } from 'vitest';
import type { FileResult } from '../../scripts/test-count.ts';
import { timesText } from '../../scripts/test-times.ts';

const file = (name: string, seconds: number): FileResult => ({
  name,
  status: 'passed',
  assertionResults: [],
  startTime: 1000,
  endTime: 1000 + seconds * 1000,
});

test('the longest folders and files are told, and nothing of a short run', () => {
  const quick = Array.from({ length: 60 }, (_, i) => file(`/project/test/quick/${i}.test.ts`, 1));
  const slow = file('/project/test/slow/one.test.ts', 90);
  const lines = timesText({ testResults: [...quick, slow] }, '/project');
  expect(lines.slice(0, 3)).toEqual([
    'all files: 150 s',
    '    90 s  test/slow/ (1)',
    '    60 s  test/quick/ (60)',
  ]);
  expect(lines[3]).toBe('    90 s  test/slow/one.test.ts');
  expect(lines).toHaveLength(3 + 12);
  expect(timesText({ testResults: [slow] }, '/project')).toEqual([]);
});
