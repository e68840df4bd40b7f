import { z } from 'zod';
import { DateTime, Identifier, openValue, SourceFile } from './definition.ts';
import { Artifact, TrajectoryEntry, Usage, VerifyStep } from './report.ts';
import { Validation } from './validation.ts';

/**
 * Schemas of runs and trials as `evals.runs.list` returns them. Which fields are required is our choice,
 * because the specification does not say it.
 */

export const Costs = z.strictObject({
  allocatedUsd: z.number().optional(),
  estimatedEquivalentUsd: z.number().optional(),
  knownActualUsd: z.number().optional(),
  incomplete: z.boolean().optional(),
  components: z
    .array(
      z.strictObject({
        classification: openValue('actual', 'estimated'),
        component: openValue('agent', 'judge', 'user'),
        detail: z.record(z.string(), z.unknown()).optional(),
        explanation: z.string().optional(),
        source: z.string().optional(),
        usd: z.number(),
      }),
    )
    .optional(),
});
export type Costs = z.infer<typeof Costs>;

export const Distribution = z.strictObject({
  trials: z.number(),
  scored: z.number(),
  passed: z.number(),
  failed: z.number(),
  voided: z.number(),
  passRate: z.number().optional(),
  commandMin: z.number().optional(),
  commandMedian: z.number().optional(),
  commandMax: z.number().optional(),
  deterministic: z.boolean().optional(),
});
export type Distribution = z.infer<typeof Distribution>;

export const Setup = z.strictObject({
  prompt: z.string().optional(),
  prepare: z.string().optional(),
  source: z.strictObject({ kind: z.string() }).optional(),
  verify: z.string().optional(),
  validator: z.string().optional(),
  validatorFiles: z.array(SourceFile).optional(),
});
export type Setup = z.infer<typeof Setup>;

export const RunVariant = z.strictObject({
  id: z.string(),
  model: z.string(),
  harness: z.string().optional(),
  profile: z.string().optional(),
  sandbox: z.string().optional(),
  userModel: z.string().optional(),
});
export type RunVariant = z.infer<typeof RunVariant>;

export const Trial = z.strictObject({
  id: z.string(),
  ordinal: z.number(),
  status: openValue('queued', 'running', 'reported', 'completed', 'voided'),
  sandboxId: z.string().optional(),
  commands: z.number().optional(),
  failedCommands: z.number().optional(),
  exitCode: z.number().optional(),
  modelMs: z.number().optional(),
  sandboxMs: z.number().optional(),
  timed: z.boolean().optional(),
  filesChanged: z.array(z.string()).optional(),
  artifacts: z.array(Artifact).optional(),
  costs: Costs.optional(),
  usage: Usage.optional(),
  trajectory: z.array(TrajectoryEntry).optional(),
  validations: z.array(Validation).optional(),
  verifySteps: z.array(VerifyStep).optional(),
  voidFields: z.array(z.string()).optional(),
});
export type Trial = z.infer<typeof Trial>;

export const RunRecord = z.strictObject({
  id: z.string(),
  batchId: z.string().optional(),
  case: z.strictObject({ id: z.string(), name: z.string().optional() }).optional(),
  suite: z.strictObject({ id: z.string(), name: z.string().optional() }).optional(),
  variant: RunVariant.optional(),
  status: openValue('queued', 'running', 'completed', 'canceled').optional(),
  local: z.boolean().optional(),
  startedAt: DateTime.optional(),
  finishedAt: DateTime.optional(),
  harnessVersion: z.string().optional(),
  profileVersion: z.string().optional(),
  definitionHash: z.string().optional(),
  costs: Costs.optional(),
  distribution: Distribution.optional(),
  setup: Setup.optional(),
  trigger: z
    .strictObject({ source: openValue('dashboard', 'api').optional(), url: z.string().optional() })
    .optional(),
  trials: z.array(Trial).optional(),
});
export type RunRecord = z.infer<typeof RunRecord>;

export const RunsRequest = z.strictObject({
  caseId: Identifier,
  page: z.int().min(0).optional().meta({ description: 'The page, from 1. 0 means 1.' }),
  variant: z.string().optional().meta({ description: "A variant's id, or a model." }),
});
export type RunsRequest = z.infer<typeof RunsRequest>;

export const RunsResponse = z.strictObject({
  page: z.number(),
  pageSize: z.number(),
  total: z.number(),
  runs: z.array(RunRecord),
});
export type RunsResponse = z.infer<typeof RunsResponse>;
