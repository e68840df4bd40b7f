import { z } from 'zod';
import { Count, DateTime, EpochMillis, Identifier, openValue } from './definition.ts';
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

/** Schemas of `evals.evidence`, which says how far results that were reported can be followed. */

/** The media types of a bundle of evidence as the body of a request. The first is the one to send. */
export const evidenceTypes = ['application/zstd', 'application/octet-stream'] as const;

export const EvidenceRequest = z.strictObject({ id: Identifier.meta({ description: 'The run.' }) });
export type EvidenceRequest = z.infer<typeof EvidenceRequest>;

const AuditedTrial = z.strictObject({
  id: z.string().meta({ description: 'The run.' }),
  ordinal: Count,
  level: openValue('consistent', 'regraded').optional().meta({
    description: 'How far the service itself could follow the trial. Present on a trial that is marked.',
  }),
  auditedAt: DateTime.optional().meta({ description: 'When it was marked last.' }),
  reason: z
    .string()
    .optional()
    .meta({ description: 'Why a trial of the evidence was not marked, or marked no further.' }),
});
export type AuditedTrial = z.infer<typeof AuditedTrial>;

export const EvidenceResponse = z.strictObject({
  trials: z.array(AuditedTrial).meta({
    description: 'The marked trials of the run; or, of evidence that was sent, all its trials with a result.',
  }),
});
export type EvidenceResponse = z.infer<typeof EvidenceResponse>;
