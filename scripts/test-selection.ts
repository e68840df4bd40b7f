import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';

/**
 * Tests whose files end in this are the long form of what shorter tests show once: every harness, every
 * fault, every format. They take most of the time of all tests.
 */
const longTests = '**/*.long.test.ts';

/** `--long-part` runs one part of the long tests: five commits in a row run all of them. */
const longParts = 5;

/**
 * The files of short tests share processes: starting a process and reading the modules again takes half a
 * second of processor time for each file. Each file of long tests has its own process, because some measure
 * its memory.
 */
const inSharedProcesses = '--no-isolate';

export interface TestSelection {
  vitestArgs: string[];
  /** Whether the long tests are left out. */
  isShort: boolean;
  /** Whether a part of the long tests runs after the short ones. */
  hasLongPart: boolean;
}

/**
 * What `npm test` was asked to run: with `--all` every test, with files and folders the tests in them, and
 * otherwise every test but the long ones. All other arguments are vitest's.
 */
export function testSelection(args: readonly string[]): TestSelection {
  const others = args.filter((argument) => argument !== '--all' && argument !== '--long-part');
  const isShort = !args.includes('--all') && !others.some(namesTests);
  return {
    vitestArgs: isShort ? [...others, `--exclude=${longTests}`, inSharedProcesses] : others,
    isShort,
    hasLongPart: isShort && args.includes('--long-part'),
  };
}

/** The files of the long tests that are this commit's part. */
export function longPart(commits: number, files = globSync(`test/${longTests}`)): string[] {
  return files.toSorted().filter((_, index) => index % longParts === commits % longParts);
}

/** How many commits lead to the one that is checked out; 0 in a copy of the files without its history. */
export function countCommits(): number {
  const { status, stdout } = spawnSync('git', ['rev-list', '--count', 'HEAD'], { encoding: 'utf8' });
  return status === 0 ? Number(stdout) : 0;
}

/** Vitest takes a part of a path as well as a whole one. */
function namesTests(argument: string): boolean {
  return !argument.startsWith('-') && (argument.includes('/') || existsSync(argument));
}
