import { z } from 'zod';
import { Count, DateTime, Identifier, openValue } from './primitives.ts';

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
