/** A group of tests, as a column of the table in docs/engines.md. */
export interface EngineCheck {
  name: string;
  /** How the paths of its tests begin. A file belongs to the first check that names it. */
  tests: readonly string[];
}

/** What `npm test -- --engine NAME` runs, if no files are named. */
export const engineChecks: readonly EngineCheck[] = [
  { name: 'conformance', tests: ['test/engine/conformance.'] },
  { name: 'kill -9', tests: ['test/engines/'] },
  { name: 'two at once', tests: ['test/cli/several-engines.'] },
  { name: 'containment', tests: ['test/engine/hostile/'] },
  { name: 'hostile', tests: ['test/hostile/'] },
  { name: 'engine', tests: ['test/engine/'] },
  { name: 'trials', tests: ['test/trial/', 'test/validate/', 'test/harness/'] },
  { name: 'harnesses', tests: ['test/runners/'] },
  {
    name: 'commands',
    tests: [
      'test/cli/doctor.',
      'test/cli/engine-faults.',
      'test/cli/run.',
      'test/cli/resume.',
      'test/cli/services.',
    ],
  },
];

/** The check that a test file belongs to, by its path below the project's folder. */
export function checkOf(file: string): string | undefined {
  return engineChecks.find(({ tests }) => tests.some((test) => file.startsWith(test)))?.name;
}
