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

const Call = z.strictObject({
  index: z.int(),
  method: openValue('answer', 'judge').optional(),
  startedAt: EpochMillis.optional(),
  durationMs: z.int().optional(),
  input: CapturedText.optional(),
  output: CapturedText.optional(),
  error: CapturedText.optional(),
});

const Log = z.strictObject({
  index: z.int(),
  at: EpochMillis.optional(),
  level: openValue('stdout', 'stderr').optional(),
  value: CapturedText.optional(),
});

export const Validation = z.strictObject({
  id: z.string(),
  index: z.int(),
  name: z.string(),
  kind: openValue('code', 'program', 'judgment', 'protected', 'tampering', 'tests').optional(),
  status: openValue('queued', 'passed', 'failed', 'voided').optional(),
  startedAt: EpochMillis.optional(),
  durationMs: z.int().optional(),
  message: z.string().optional(),
  exitCode: z.number().optional(),
  truncated: z.boolean().optional(),
  input: CapturedText.optional(),
  output: CapturedText.optional(),
  error: CapturedText.optional(),
  calls: z.array(Call).optional(),
  logs: z.array(Log).optional(),
  judgment: Judgment.optional(),
  metadata: CapturedText.optional(),
});
export type Validation = z.infer<typeof Validation>;

/** A reported text has no `format` and no `state`. */
export const ReportedText = z.strictObject({ text: z.string(), truncated: z.boolean().optional() });
export type ReportedText = z.infer<typeof ReportedText>;

const ReportedCall = z.strictObject({
  index: z.int(),
  startedAt: EpochMillis.optional(),
  durationMs: z.int().optional(),
  input: ReportedText.optional(),
  output: ReportedText.optional(),
  error: ReportedText.optional(),
});

const ReportedLog = z.strictObject({
  index: z.int(),
  at: EpochMillis.optional(),
  value: ReportedText.optional(),
});

export const ReportedValidation = z.strictObject({
  id: z.string(),
  index: z.int(),
  name: z.string(),
  startedAt: EpochMillis.optional(),
  durationMs: z.int().optional(),
  message: z.string().optional(),
  exitCode: z
    .number()
    .optional()
    .meta({ description: '0 if the validation passed. Absent if it has no verdict.' }),
  truncated: z.boolean().optional(),
  input: ReportedText.optional(),
  output: ReportedText.optional(),
  error: ReportedText.optional(),
  calls: z.array(ReportedCall).optional(),
  logs: z.array(ReportedLog).optional(),
});
export type ReportedValidation = z.infer<typeof ReportedValidation>;
