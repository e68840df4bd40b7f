import { dirname, relative } from 'node:path';
import type { FileResult, TestReport } from './test-count.ts';

/** With fewer files, vitest's own lines show the times. */
const minFiles = 50;
const maxListed = 12;

/**
 * Where the time of a run went, as lines to print: folders and files, the longest first. Seconds are sums
 * over the files. If several files run at a time, the sum is longer than the run. None for a run of few
 * files.
 *
 * @param root the folder that paths are relative to
 */
export function timesText({ testResults }: TestReport, root: string): string[] {
  if (testResults.length < minFiles) return [];
  const files = testResults.map((file) => ({ path: relative(root, file.name), seconds: secondsOf(file) }));
  const folders = [...Map.groupBy(files, ({ path }) => dirname(path))].map(([path, within]) => ({
    path: `${path}/ (${within.length})`,
    seconds: within.reduce((sum, { seconds }) => sum + seconds, 0),
  }));
  const all = files.reduce((sum, { seconds }) => sum + seconds, 0);
  return [`all files: ${all.toFixed(0)} s`, ...longest(folders), ...longest(files)];
}

function longest(all: readonly { path: string; seconds: number }[]): string[] {
  return all
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, maxListed)
    .map(({ path, seconds }) => `${seconds.toFixed(0).padStart(6)} s  ${path}`);
}

function secondsOf({ startTime, endTime }: FileResult): number {
  return Math.max(0, endTime - startTime) / 1000;
}
