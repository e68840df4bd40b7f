import { existsSync } from 'node:fs';

/**
 * Tests whose files end in this are the long form of what shorter tests show once: every harness, every
 * fault, every format. They take most of the time of all tests.
 */
const longTests = '**/*.long.test.ts';

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
}

/**
 * What `npm test` was asked to run: with `--all` every test, with files and folders the tests in them, and
 * otherwise every test but the long ones. All other arguments are vitest's.
 */
export function testSelection(args: readonly string[]): TestSelection {
  const others = args.filter((argument) => argument !== '--all');
  const isShort = others.length === args.length && !others.some(namesTests);
  return { vitestArgs: isShort ? [...others, `--exclude=${longTests}`, inSharedProcesses] : others, isShort };
}

/** Vitest takes a part of a path as well as a whole one. */
function namesTests(argument: string): boolean {
  return !argument.startsWith('-') && (argument.includes('/') || existsSync(argument));
}
