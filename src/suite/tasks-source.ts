import { z } from 'zod';
import { Duration } from './quantities.ts';
import { BuildSource } from './services.ts';
import { Count, NonEmpty } from './text-source.ts';

/**
 * The schema of `tasks:`, which takes the cases of a suite from a folder of tasks in another project's
 * format.
 */

export const taskFormats = ['harbor', 'terminal-bench', 'swe-bench'] as const;

const Globs = z.array(NonEmpty).optional();
const Threshold = z.number();

/** How the output of tests with names is read. `junit`: they write a report. */
export const testParsers = ['pytest', 'pytest-v', 'django', 'junit'] as const;

const RowTest = z.strictObject({
  parser: z
    .enum(testParsers)
    .default('pytest')
    .describe('What the tests print, or with `junit`, the report that they write. Default: pytest.'),
  command: NonEmpty.optional().describe(
    'Bash that runs the tests, with {files} of the test patch, {modules} as Django names ' +
      'them, and {report}. Default: pytest.',
  ),
  timeout: Duration.optional().describe('Default: 30m.'),
  restored: z
    .array(z.string().regex(/^[^/]+$/, 'expected the name of a file, without a folder'))
    .optional()
    .describe(
      "Names of files that are the image's own when the tests run, whatever the agent made of them. " +
        'Default: conftest.py, pytest.ini, .pytest.ini, pytest.toml, .pytest.toml, sitecustomize.py, usercustomize.py.',
    ),
});

const Parts = z.strictObject({
  path: NonEmpty.describe('A folder of tasks, or one task, relative to this file.'),
  format: z.enum(taskFormats).optional().describe('Only tasks of this format. Default: all.'),
  include: Globs.describe('Globs of ids. Default: all tasks.'),
  exclude: Globs.describe('Globs of ids to leave out.'),
  limit: Count.optional().describe('At most this many tasks.'),
  seed: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .optional()
    .describe('Take the tasks in an order that depends on this number: a sample.'),
  image: NonEmpty.optional().describe(
    "For rows of SWE-bench, each one's image, with {instance_id}, {docker_id}, {repo}, {version} or " +
      '{base_commit}.',
  ),
  build: BuildSource.optional().describe(
    'For rows of SWE-bench, in place of an image. The values of args may have the same names in braces.',
  ),
  test: RowTest.optional().describe('How the tests of rows of SWE-bench are run and read.'),
  threshold: z
    .union([Threshold, z.record(z.string(), Threshold)], { error: 'expected a number, or {reward: number}' })
    .optional()
    .describe('What each reward must reach for a pass, or some rewards by name. Default: 1.'),
});
export const TasksSource = Parts.refine(
  ({ image, build }) => image === undefined || build === undefined,
  'has an image and a build; remove one of them',
);
export type RowTest = z.infer<typeof RowTest>;
export type TasksSource = z.infer<typeof TasksSource>;
