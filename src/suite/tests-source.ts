import { z } from 'zod';
import { taskRows } from '../bounds/tasks.ts';
import { CaseHosts } from './agent-source.ts';
import { EnvironmentSource, workdirObstacle } from './environment.ts';
import { Duration } from './quantities.ts';
import { testParsers } from './tasks-source.ts';
import { FilePath, FromFile, NonEmpty, Text } from './text-source.ts';

/** The schema of `tests:`, and of a `solution:` with files. */

const Absolute = z
  .string()
  .regex(/^(\/[^/]+)+$/, 'expected an absolute path, such as /tests')
  .refine((path) => !path.split('/').some((part) => part === '.' || part === '..'), 'expected no . or ..');

/** A folder that is emptied. */
export const OwnFolder = Absolute.refine(
  (path) => workdirObstacle(path) === undefined,
  'a folder of the system cannot be emptied for tests',
);

const InOwnFolder = Absolute.refine(
  (path) => workdirObstacle(path.slice(0, path.lastIndexOf('/')) || '/') === undefined,
  'its folder would be emptied for the tests, which cannot be done with a folder of the system',
);

const command = z.array(NonEmpty).min(1).describe('A program and its arguments.');
const env = z.record(NonEmpty, z.string()).optional().describe('Environment variables.');

const Names = z.array(NonEmpty).max(taskRows.count.tests);

/** The names of tests, inline or in a file. */
const TestNames = z.union([Names, FromFile], { error: 'expected a list of names, or {file: path}' });
export type TestNames = z.infer<typeof TestNames>;

/** What {@link TestNames} finds in a file. */
export const NamesFile = Names;

/** A commit, as git takes it after its options. */
export const CommitName = z.string().regex(/^[^\s-]\S*$/, 'expected a commit, such as its id');

const NamedTests = z
  .strictObject({
    parser: z
      .enum(testParsers)
      .default('pytest')
      .describe('What the tests print, or with `junit`, the report that they write.'),
    report: InOwnFolder.default('/logs/verifier/report.xml').describe(
      'Where the parser `junit` looks. Default: /logs/verifier/report.xml.',
    ),
    failToPass: TestNames.describe('Tests that must pass: a list, or a file with a list in JSON.'),
    passToPass: TestNames.default([]).describe('Tests that must pass, or be skipped.'),
  })
  .describe('Tests with names. The reward `resolved` is 1 if all of them passed, else 0.');

const Brought = z.union(
  [
    Absolute.transform((path) => ({ path, except: [] as string[] })),
    z.strictObject({
      path: Absolute.describe('What is copied.'),
      except: z.array(NonEmpty).default([]).describe('Globs of files that are not copied.'),
    }),
  ],
  { error: 'expected an absolute path other than /, or {path, except}' },
);

/** Where tests run in place of the agent's own sandbox. */
const freshParts = {
  in: z
    .enum(['same', 'fresh'])
    .default('same')
    .describe(
      "same: in the agent's own sandbox (default). " +
        'fresh: in a sandbox in which no agent ran, which gets what `brings` names.',
    ),
  environment: EnvironmentSource.optional().describe(
    'For in: fresh, the environment of the tests. Default: a fresh one of the case.',
  ),
  brings: z
    .union([z.literal('workspace'), z.array(Brought)], {
      error: 'expected workspace, or a list of absolute paths',
    })
    .optional()
    .describe(
      "For in: fresh, what is copied from the agent's sandbox to the same paths. " +
        'workspace: all of it but .git, the files of `patch`, and `restored`.',
    ),
  sealed: z
    .array(Absolute)
    .optional()
    .describe(
      'Folders into which a path above them brings nothing. Default: the folders of the tests and rewards.',
    ),
  patch: z
    .strictObject({
      source: Text.describe('As `git apply` takes it.'),
      base: CommitName.describe('The commit in the workspace that it applies to.'),
    })
    .optional()
    .describe("For brings: workspace, a patch that adds tests. Its files are never the agent's."),
  restored: z
    .array(z.string().regex(/^[^/]+$/, 'expected the name of a file, without a folder'))
    .optional()
    .describe('For brings: workspace, names of files that stay as in the image.'),
};

const gradingParts = {
  folders: z
    .record(OwnFolder, FilePath)
    .optional()
    .describe('Path in the sandbox -> folder. Put there when the agent has ended; nothing else is there.'),
  files: z.record(InOwnFolder, FilePath).optional().describe('The same for single files.'),
  command,
  env: env.describe('Environment variables of the tests.'),
  user: NonEmpty.optional().describe("Runs the tests. Default: the sandbox's user."),
  timeout: Duration.default(600_000).describe('Default: 10m.'),
  rewards: z
    .strictObject({
      json: InOwnFolder.describe('An object of numbers in JSON.'),
      text: InOwnFolder.describe('One number. Read if there is no JSON.'),
    })
    .optional()
    .describe('Files that the tests write: an object of numbers in JSON, else one number.'),
  collect: z
    .array(
      z.strictObject({
        command: NonEmpty.describe('Bash.'),
        timeout: Duration.default(60_000).describe('Default: 60s.'),
        user: NonEmpty.optional().describe("Runs it. Default: the sandbox's user."),
      }),
    )
    .optional()
    .describe('Run when the agent has ended, before anything is collected. May fail.'),
  hosts: CaseHosts.optional(),
  prints: z
    .enum(['pytest', 'swebench'])
    .optional()
    .describe('The tests print results in place of rewards, in this form.'),
  named: NamedTests.optional(),
};

const ByName = z.record(z.string(), z.number());

export const Threshold = z
  .union([z.number(), ByName], { error: 'expected a number, or {reward: number}' })
  .default(1)
  .describe('What each reward must reach for a pass, or some rewards by name. Default: 1.');

export const TestsSource = z
  .strictObject({ ...gradingParts, ...freshParts, threshold: Threshold })
  .superRefine(refuseContradictions)
  .describe('In place of verify and validator: tests that run after the agent. Local.');

/** The tests of a step. */
export const StepTestsSource = z
  .strictObject({
    ...gradingParts,
    ...freshParts,
    threshold: ByName.default({}).describe(
      'Rewards by name, each of which must be there and reach this for the next step to run.',
    ),
  })
  .superRefine(refuseContradictions)
  .describe('Grade the step when its agent has ended.');
export type TestsSource = z.infer<typeof TestsSource> | z.infer<typeof StepTestsSource>;

type Given = z.infer<z.ZodObject<typeof gradingParts & typeof freshParts>>;

function refuseContradictions(tests: Given, { addIssue }: z.RefinementCtx): void {
  const refuse = (key: keyof Given, message: string) => addIssue({ code: 'custom', path: [key], message });
  const { rewards, prints, named, brings } = tests;
  if ([rewards, prints, named].filter((given) => given !== undefined).length !== 1)
    addIssue({ code: 'custom', message: 'expected rewards, prints or named, one of them' });
  if (tests.in === 'fresh' && brings === undefined)
    refuse('in', "requires brings, which names what the tests get of the agent's sandbox");
  for (const key of ['environment', 'brings', 'sealed', 'patch', 'restored'] as const) {
    if (tests[key] === undefined) continue;
    if (tests.in === 'same') refuse(key, 'requires in: fresh');
    else if (key === 'sealed' && brings === 'workspace') refuse(key, 'requires paths in brings');
    else if ((key === 'patch' || key === 'restored') && brings !== 'workspace')
      refuse(key, 'requires brings: workspace');
  }
}

export const OracleSource = z.strictObject({
  command,
  folders: z.record(Absolute, FilePath).optional().describe('Path in the sandbox -> folder.'),
  files: z.record(Absolute, FilePath).optional().describe('Path in the sandbox -> file.'),
  env,
});
export type OracleSource = z.infer<typeof OracleSource>;
