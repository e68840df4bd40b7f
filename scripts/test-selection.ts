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

/**
 * Seconds that the longest files take in a run of all tests on two cores. Of others, one takes as long as
 * another, as far as it matters.
 */
const seconds: Readonly<Record<string, number>> = {
  'gateway/real-servers/real-servers': 590,
  'runners/matrix-others': 410,
  'runners/matrix-openai': 410,
  'runners/openhands': 410,
  'runners/opencode': 280,
  'runners/cline': 270,
  'audit/another-engine': 250,
  'trial/regrade': 240,
  'cli/visible-answers': 180,
  'hostile/suites': 160,
  'scripts/screenshots': 160,
  'fleet/poll': 150,
  'cli/run-tasks': 140,
  'hostile/terminal': 140,
  'runners/aider': 130,
  'trial/pull': 120,
  'faults/both-sides': 120,
  'hostile/stopped-sandbox': 120,
  'engine/small-disk': 120,
  'hostile/chosen-void': 110,
  'trial/build': 110,
  'cli/several-engines': 100,
  'trial/foreign-images': 100,
  'runners/mini-swe-agent': 90,
  'cli/import-tasks': 90,
  'hostile/group-signals': 90,
  'cli/shutdown': 80,
  'runners/kimi': 80,
  'cli/compare-to': 80,
  'hostile/memory': 80,
};
const secondsOf = (file: string) => seconds[file.replace(/^test\/|\.long\.test\.ts$/g, '')] ?? 21;

/** The files of the long tests that are this commit's part. All parts take about as long. */
export function longPart(commits: number, files = globSync(`test/${longTests}`)): string[] {
  const parts = Array.from({ length: longParts }, () => ({ seconds: 0, files: [] as string[] }));
  for (const file of files.toSorted().toSorted((a, b) => secondsOf(b) - secondsOf(a))) {
    const shortest = parts.reduce((least, part) => (part.seconds < least.seconds ? part : least));
    shortest.files.push(file);
    shortest.seconds += secondsOf(file);
  }
  return parts[commits % longParts]?.files ?? [];
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
