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
 * Seconds that the longest files took in a run of all tests on two cores. Of others, one takes as long as
 * another, as far as it matters.
 */
const seconds: Readonly<Record<string, number>> = {
  'runners/openhands': 800,
  'gateway/real-servers/real-servers': 610,
  'runners/opencode': 580,
  'audit/another-engine': 550,
  'runners/matrix-openai': 490,
  'runners/matrix-others': 490,
  'runners/qwen-code': 410,
  'runners/cline': 330,
  'scripts/screenshots': 300,
  'engine/small-disk': 250,
  'hostile/suites': 250,
  'trial/regrade': 230,
  'trial/foreign-images': 230,
  'runners/copilot': 210,
  'trial/pull': 200,
  'trial/build': 190,
  'faults/both-sides': 170,
  'runners/aider': 160,
  'hostile/terminal': 160,
  'fleet/poll': 160,
  'runners/mini-swe-agent': 130,
  'runners/gemini-cli': 130,
  'runners/kimi': 130,
  'hostile/stopped-sandbox': 130,
  'cli/visible-answers': 120,
  'hostile/chosen-void': 120,
  'runners/claude-code': 120,
  'cli/import-tasks': 110,
  'cli/run-tasks': 110,
  'daemon/claims': 110,
  'evidence/evidence': 100,
  'cli/several-engines': 100,
  'cli/check': 100,
  'trial/sandboxes': 100,
  'doubles/services': 100,
  'hostile/group-signals': 90,
  'engine/conformance': 90,
  'engine/files-many': 90,
  'cli/shutdown': 80,
  'hostile/forged-verify': 80,
  'hostile/memory': 80,
  'audit/forgeries': 80,
  'faults/survive': 80,
  'package/installed': 70,
};
export const secondsOf = (file: string) => seconds[file.replace(/^test\/|\.long\.test\.ts$/g, '')] ?? 20;

export interface LongPart {
  /** "3 of 5" */
  name: string;
  files: string[];
}

/** The long tests that are this commit's part. All parts take about as long. */
export function longPart(commit: number, all = globSync(`test/${longTests}`)): LongPart {
  const parts = Array.from({ length: longParts }, () => ({ seconds: 0, files: [] as string[] }));
  for (const file of all.toSorted().toSorted((a, b) => secondsOf(b) - secondsOf(a))) {
    const shortest = parts.reduce((least, part) => (part.seconds < least.seconds ? part : least));
    shortest.files.push(file);
    shortest.seconds += secondsOf(file);
  }
  const index = commit % longParts;
  return { name: `${index + 1} of ${longParts}`, files: parts[index]?.files ?? [] };
}

/**
 * A number that counts up with the commits, and is the same for each run of one. A clone without the older
 * commits cannot count them: its number comes from the commit's hash. It is 0 in a copy without a history.
 */
export function commitNumber(folder = '.'): number {
  const git = (...args: string[]) =>
    spawnSync('git', ['-C', folder, ...args], { encoding: 'utf8' }).stdout?.trim();
  const isShallow = git('rev-parse', '--is-shallow-repository') === 'true';
  if (isShallow) return Number.parseInt(git('rev-parse', 'HEAD')?.slice(0, 8) ?? '0', 16);
  return Number(git('rev-list', '--count', 'HEAD') || 0);
}

/** Vitest takes a part of a path as well as a whole one. */
function namesTests(argument: string): boolean {
  return !argument.startsWith('-') && (argument.includes('/') || existsSync(argument));
}
