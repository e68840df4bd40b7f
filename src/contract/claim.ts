import { z } from 'zod';
import { Count, DateTime, Identifier } from './primitives.ts';

/** Schemas of a lease on one trial, which `evals.claimTrial` grants. */

export const claimLimits = { seconds: 3600 } as const;

export const ClaimRequest = z.strictObject({
  id: Identifier.meta({ description: 'The run.' }),
  ordinal: Count,
  agent: Identifier.max(200).meta({ description: 'Who claims the trial. Each agent has an id of its own.' }),
  seconds: z.int().min(0).max(claimLimits.seconds).meta({
    description: 'How long the lease holds. 0 gives the trial back at once.',
  }),
  attempt: z.int().min(1).optional().meta({
    description:
      'The number of a lease that this agent has, to renew it. Without it, a new lease is asked for.',
  }),
});
export type ClaimRequest = z.infer<typeof ClaimRequest>;

export const ClaimResponse = z.strictObject({
  attempt: z.int().meta({
    description: "The lease's number. It grows with each new lease of the trial; a renewal keeps it.",
  }),
  expiresAt: DateTime,
});
export type ClaimResponse = z.infer<typeof ClaimResponse>;
