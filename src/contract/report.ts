import { z } from 'zod';
import { Count, EpochMillis, Identifier } from './primitives.ts';
import { Judgment, ReportedValidation } from './validation.ts';

/** Schemas of a trial that ran outside the platform, as `evals.reportTrial` carries it. */

/** A number that was not measured is left out. It is never 0. */
export const Usage = z.strictObject({
  cacheReadTokens: z.number().optional(),
  cacheWriteTokens: z.number().optional(),
  inputTokens: z.number().optional(),
  outputTokens: z.number().optional(),
  totalTokens: z.number().optional(),
  costUsd: z.number().optional(),
});
export type Usage = z.infer<typeof Usage>;

export const VerifyStep = z.strictObject({ command: z.string(), exitCode: z.number() });
export type VerifyStep = z.infer<typeof VerifyStep>;

export const Artifact = z.strictObject({
  path: z.string(),
  byteSize: Count,
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits'),
});
export type Artifact = z.infer<typeof Artifact>;

export const TrajectoryEntry = z.strictObject({
  _tag: z.literal('command'),
  command: z.string(),
  exitCode: z.number().optional(),
  startedAtMillis: EpochMillis.optional(),
  finishedAtMillis: EpochMillis.optional(),
  output: z.string().optional(),
  outputTruncated: z.boolean().optional(),
});
export type TrajectoryEntry = z.infer<typeof TrajectoryEntry>;

const StartedEvent = z.strictObject({
  _tag: z.literal('Started'),
  model: z.string(),
  sessionId: z.string(),
  at: EpochMillis,
});

/** The specification shows only `Started`. Events of other kinds are kept unchanged. */
const UnknownEvent = z.looseObject({
  _tag: z.string().refine((tag) => tag !== 'Started' && tag !== 'command', {
    message: 'has a known _tag but not its shape',
    // Abort here, so that the error comes from the schema of that _tag.
    abort: true,
  }),
});

export const TrialEvent = z.union([StartedEvent, TrajectoryEntry, UnknownEvent]);
export type TrialEvent = z.infer<typeof TrialEvent>;

export const ReportedOutcome = z.strictObject({
  commandCount: z.number().optional(),
  exitCode: z.number().optional(),
  modelMs: z.number().optional(),
  sandboxMs: z.number().optional(),
  passed: z.boolean().optional(),
  verifySteps: z.array(VerifyStep).optional(),
  voidFields: z.array(z.string()).optional().meta({
    description:
      'Names of outcome fields that are not valid. If `passed` is one of them, the trial counts as voided.',
  }),
  artifacts: z.array(Artifact).optional(),
  validations: z.array(ReportedValidation).optional(),
  judgments: z.array(Judgment).optional(),
});
export type ReportedOutcome = z.infer<typeof ReportedOutcome>;

export const ReportedTrial = z.strictObject({
  caseName: z.string(),
  ordinal: Count,
  taskIndex: Count.meta({ description: "The run's position in the `runs` of evals.start, or 0 if unknown." }),
  sandboxId: z.string().optional(),
  events: z.array(TrialEvent),
  outcome: ReportedOutcome,
  usage: Usage.optional(),
});
export type ReportedTrial = z.infer<typeof ReportedTrial>;

export const ReportRequest = z.strictObject({
  id: Identifier.meta({ description: 'The run. The batch is accepted too.' }),
  trial: ReportedTrial,
  attempt: z
    .int()
    .min(1)
    .optional()
    .meta({
      description:
        'Added by Offsite: the number of the lease under which the trial ran. ' +
        'The report is refused if the trial has a newer lease.',
    }),
});
export type ReportRequest = z.infer<typeof ReportRequest>;
