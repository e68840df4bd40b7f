import { existsSync } from 'node:fs';

/**
 * Tests whose files end in this are the long form of what shorter tests show once: every harness, every
 * fault, every format. They take most of the time of all tests.
 */
const longTests = '**/*.long.test.ts';

/**
 * Short tests share a process with those before them: to start one, and to read the modules again, takes half
 * a second of a processor for each file. Long tests have one each, since some measure its memory.
 */
const inSharedProcesses = '--no-isolate';

export interface TestSelection {
  vitestArgs: string[];
  /** Whether the long tests are left out. */
  isShort: boolean;
}

/**
 * What `npm test` was asked to run: `--all` is every test, files and folders are those, and without either it
 * is every test but the long ones. All other arguments are vitest's.
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
