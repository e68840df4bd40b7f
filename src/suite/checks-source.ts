import { z } from 'zod';
import { Duration } from './quantities.ts';
import { Text } from './text-source.ts';

/** The checks and judges that a case may have in place of a validator of its own. They become one. */

const Name = z
  .string()
  .min(1)
  .optional()
  .meta({ description: 'Its name in results. Default: what it says; for a judge, judge.' });
const WorkPath = z
  .string()
  .min(1)
  .refine((path) => !path.startsWith('/') && !path.split('/').includes('..'), {
    error: 'expected a path in the workspace',
  });

const comparisons = {
  contains: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
    .optional()
    .meta({ description: 'A text that is in it, or several that all are.' }),
  matches: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'A regular expression of JavaScript, with the flags m and u, that matches in it.' }),
};
const equals = z
  .string()
  .optional()
  .meta({ description: 'The whole text, without the space around it. A number is written in quotes.' });

const FileCheck = z.strictObject({
  file: WorkPath.meta({ description: 'A file, or a folder with files, that exists.' }),
  absent: z.literal(true).optional().meta({ description: 'It must not exist.' }),
  name: Name,
  equals,
  ...comparisons,
});

const JsonCheck = z.strictObject({
  json: WorkPath.meta({ description: 'A file with JSON.' }),
  at: z
    .string()
    .regex(/^(\/.*)?$/, { error: 'expected a JSON Pointer, such as /items/0/name' })
    .optional()
    .meta({ description: 'A JSON Pointer to the value, such as /items/0/name. Default: the whole.' }),
  name: Name,
  equals: z.json().optional().meta({ description: 'The value, of any type.' }),
  ...comparisons,
});

const RunCheck = z.strictObject({
  run: z.string().min(1).meta({ description: 'A command for bash, in the workspace.' }),
  exitCode: z.int().min(0).max(255).optional().meta({ description: 'Default: 0.' }),
  timeout: Duration.optional().meta({ description: 'Default: 60s.' }),
  name: Name,
  equals: equals.meta({
    description: 'The whole of stdout, without the space around it. A number is written in quotes.',
  }),
  ...comparisons,
});

export const CheckSource = z.union([FileCheck, JsonCheck, RunCheck], {
  error:
    'expected {file: path}, {json: path, at: pointer}, or {run: command}, with contains, matches or equals',
});

const JudgeSource = z.strictObject({
  rubric: Text.meta({ description: 'What is good and what is not.' }),
  threshold: z.number().min(0).max(1).meta({ description: 'The lowest score that passes, from 0 to 1.' }),
  files: z.array(z.string().min(1)).min(1).optional().meta({
    description:
      'Globs of files that it reads. Default: those that the harness changed, and what it said last.',
  }),
  model: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'A model of offsite.yaml. Default: the first of the judges of the suite.' }),
  votes: z
    .int()
    .min(1)
    .optional()
    .meta({ description: 'How often it is asked; the median counts. Default: 1.' }),
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
