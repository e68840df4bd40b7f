import { z } from 'zod';
import { Duration } from './quantities.ts';
import { Count, NonEmpty, Text } from './text-source.ts';

/** The checks and judges that a case may have in place of a validator of its own. They become one. */

const Name = NonEmpty.optional().describe('Its name in results. Default: what it says; for a judge, judge.');
const WorkPath = NonEmpty.refine((path) => !path.startsWith('/') && !path.split('/').includes('..'), {
  error: 'expected a path in the workspace',
});

const comparisons = {
  contains: z
    .union([NonEmpty, z.array(NonEmpty).min(1)])
    .optional()
    .describe('A text that is in it, or several that all are.'),
  matches: NonEmpty.optional().describe(
    'A regular expression of JavaScript, with the flags m and u, that matches in it.',
  ),
};
const equals = z
  .string()
  .optional()
  .describe('The whole text, without the space around it. A number is written in quotes.');

const FileCheck = z.strictObject({
  file: WorkPath.describe('A file, or a folder with files, that exists.'),
  absent: z.literal(true).optional().describe('It must not exist.'),
  name: Name,
  equals,
  ...comparisons,
});

const JsonCheck = z.strictObject({
  json: WorkPath.describe('A file with JSON.'),
  at: z
    .string()
    .regex(/^(\/.*)?$/, { error: 'expected a JSON Pointer, such as /items/0/name' })
    .optional()
    .describe('A JSON Pointer to the value, such as /items/0/name. Default: the whole.'),
  name: Name,
  equals: z.json().optional().describe('The value, of any type.'),
  ...comparisons,
});

const RunCheck = z.strictObject({
  run: NonEmpty.describe('A command for bash, in the workspace.'),
  exitCode: z.int().min(0).max(255).optional().describe('Default: 0.'),
  timeout: Duration.optional().describe('Default: 60s.'),
  name: Name,
  equals: equals.describe('The whole of stdout, without the space around it. A number is written in quotes.'),
  ...comparisons,
});

export const CheckSource = z.union([FileCheck, JsonCheck, RunCheck], {
  error:
    'expected {file: path}, {json: path, at: pointer}, or {run: command}, with contains, matches or equals',
});

const JudgeSource = z.strictObject({
  rubric: Text.describe('What is good and what is not.'),
  threshold: z.number().min(0).max(1).describe('The lowest score that passes, from 0 to 1.'),
  files: z
    .array(NonEmpty)
    .min(1)
    .optional()
    .describe(
      'Globs of files that it reads. Default: those that the harness changed, and what it said last.',
    ),
  model: NonEmpty.optional().describe(
    'A model of offsite.yaml. Default: the first of the judges of the suite.',
  ),
  votes: Count.optional().describe('How often it is asked; the median counts. Default: 1.'),
  name: Name,
});
export const JudgeSources = z.union([JudgeSource, z.array(JudgeSource).min(1)], {
  error: 'expected {rubric: text, threshold: number}, or a list of them',
});

export type CheckSource = z.infer<typeof CheckSource>;
export type JudgeSource = z.infer<typeof JudgeSource>;

/** The models that the judges of a case name. */
export function judgesOf({ judge = [] }: { judge?: JudgeSource | JudgeSource[] | undefined }): string[] {
  return [judge].flat().flatMap(({ model }) => model ?? []);
}
