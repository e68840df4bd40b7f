import { z } from 'zod';
import { EpochMillis, openValue } from './definition.ts';

/**
 * Schemas of grading results: as stored (full records), and as reported (the restricted form of
 * `evals.reportTrial`).
 */

export const CapturedText = z.strictObject({
  text: z.string(),
  format: openValue('text', 'json').optional(),
  state: openValue('captured', 'omitted').optional().meta({
    description: '`omitted`: left out on purpose. A captured text that was cut has `truncated`.',
  }),
  truncated: z.boolean().optional(),
});
export type CapturedText = z.infer<typeof CapturedText>;

export const Judgment = z.strictObject({
  name: z.string(),
  model: z.string().optional(),
  evaluator: z.string().optional(),
  score: z.number().optional(),
  choice: z.string().optional(),
  reason: z.string().optional(),
  threshold: z.number().optional(),
  durationMs: z.int().optional(),
  error: z.string().optional(),
});
export type Judgment = z.infer<typeof Judgment>;

/** A reported text has no `format` and no `state`. */
export const ReportedText = z.strictObject({ text: z.string(), truncated: z.boolean().optional() });
export type ReportedText = z.infer<typeof ReportedText>;

/** The fields that stored and reported forms share, with the texts of that form. */
function sharedFields<Text extends typeof CapturedText | typeof ReportedText>(text: Text) {
  const timed = {
    index: z.int(),
    startedAt: EpochMillis.optional(),
    durationMs: z.int().optional(),
    input: text.optional(),
    output: text.optional(),
    error: text.optional(),
  };
  return {
    call: timed,
    log: { index: z.int(), at: EpochMillis.optional(), value: text.optional() },
    validation: {
      id: z.string(),
      name: z.string(),
      message: z.string().optional(),
      truncated: z.boolean().optional(),
      ...timed,
    },
  };
}

const stored = sharedFields(CapturedText);
const Call = z.strictObject({ ...stored.call, method: openValue('answer', 'judge').optional() });
const Log = z.strictObject({ ...stored.log, level: openValue('stdout', 'stderr').optional() });

export const Validation = z.strictObject({
  ...stored.validation,
  kind: openValue('code', 'program', 'judgment', 'protected', 'tampering', 'tests').optional(),
  status: openValue('queued', 'passed', 'failed', 'voided').optional(),
  exitCode: z.number().optional(),
  calls: z.array(Call).optional(),
  logs: z.array(Log).optional(),
  judgment: Judgment.optional(),
  metadata: CapturedText.optional(),
});
export type Validation = z.infer<typeof Validation>;

const reported = sharedFields(ReportedText);

export const ReportedValidation = z.strictObject({
  ...reported.validation,
  exitCode: z
    .number()
    .optional()
    .meta({ description: '0 if the validation passed. Absent if it has no verdict.' }),
  calls: z.array(z.strictObject(reported.call)).optional(),
  logs: z.array(z.strictObject(reported.log)).optional(),
});
export type ReportedValidation = z.infer<typeof ReportedValidation>;
