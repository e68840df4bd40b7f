import { z } from 'zod';
import { serviceRequests } from '../bounds/callers.ts';
import { DateTime, Identifier, openValue } from './definition.ts';
import { Distribution, RunVariant } from './record.ts';

/** Schemas of connectors, cases and prompts, which a service offers for evaluations. */

export const Integration = z.strictObject({
  id: z.string(),
  label: z.string(),
  category: openValue('harness', 'sandbox', 'model'),
  authMethods: z.array(
    z.strictObject({
      id: z.string(),
      label: z.string(),
      kind: openValue('secret'),
      fields: z.array(
        z.strictObject({
          name: z.string(),
          label: z.string(),
          required: z.boolean(),
          secret: z.boolean(),
          hint: z.string().optional(),
        }),
      ),
    }),
  ),
});
export type Integration = z.infer<typeof Integration>;

export const CasesRequest = z.strictObject({
  suite: z.string().min(1).optional().meta({ description: "A suite's id." }),
});
export type CasesRequest = z.infer<typeof CasesRequest>;

export const CaseEntry = z.strictObject({
  id: z.string(),
  name: z.string().optional(),
  suite: z.strictObject({ id: z.string(), name: z.string().optional() }).optional(),
  tags: z.array(z.string()).optional(),
});
export type CaseEntry = z.infer<typeof CaseEntry>;

export const CasesResponse = z.strictObject({ cases: z.array(CaseEntry) });

export const RerunRequest = z.strictObject({
  id: Identifier.meta({ description: 'The batch.' }),
  cellKey: Identifier.meta({ description: '`<caseId>:<variantId>`.' }),
  trials: z.int().min(1).max(10).optional(),
});
export const RerunResponse = z.strictObject({ id: z.string().meta({ description: 'The new run.' }) });

/** At most this many baselines are in an answer, and this many runs count for a baseline. */
export const baselineLimits = { cells: 100, runs: 100 } as const;

export const BaselineRequest = z.strictObject({
  caseId: Identifier,
  suite: Identifier.optional().meta({ description: "A suite's id, where several have the case." }),
  variant: Identifier.optional().meta({
    description: "A variant's id, or a model. Without it: all variants.",
  }),
});

const BaselineRun = z.strictObject({
  id: z.string(),
  batchId: z.string(),
  startedAt: DateTime,
  harnessVersion: z.string().optional(),
  profileVersion: z.string().optional(),
  passed: z.number(),
  failed: z.number(),
  voided: z.number(),
});

export const Baseline = z.strictObject({
  suite: z.strictObject({ id: z.string(), name: z.string() }),
  case: z.strictObject({ id: z.string(), name: z.string() }),
  variant: RunVariant,
  definitionHash: z.string().meta({
    description: 'The newest definition of the cell with an ended trial. Runs of others do not count.',
  }),
  distribution: Distribution.meta({ description: 'Over the ended trials of `runs`.' }),
  passRateInterval: z
    .strictObject({ low: z.number(), high: z.number(), confidence: z.number() })
    .optional()
    .meta({
      description:
        'Where the pass rate of further trials of this case would be (Wilson). Absent if none is scored.',
    }),
  runs: z.array(BaselineRun).max(baselineLimits.runs).meta({
    description:
      'All runs that count, newest first. A reported one is among them only if the owner of the service says so.',
  }),
  notCounted: z.strictObject({
    sameDefinition: z.number().meta({ description: 'Runs that are older, or have no ended trial.' }),
    otherProfiles: z.number().meta({ description: 'Runs with another profile than the newest one.' }),
    otherDefinitions: z.number(),
  }),
});
export type Baseline = z.infer<typeof Baseline>;

export const BaselineResponse = z.strictObject({
  baselines: z.array(Baseline).max(baselineLimits.cells).meta({
    description:
      'One for each suite and variant that has an ended trial of a platform run, the newest first.',
  }),
  more: z.number().meta({ description: 'How many further ones there are: name a suite or a variant.' }),
});

export const Prompt = z.strictObject({
  id: z.string(),
  version: z.int(),
  content: z.string(),
  createdAt: z.string().optional(),
  channels: z.array(z.string()).optional(),
});
export type Prompt = z.infer<typeof Prompt>;

/** The channel whose version callers receive if they name neither a channel nor a version. Our choice. */
export const defaultChannel = 'production';

export const PromptRequest = z
  .strictObject({
    id: Identifier,
    version: z.int().min(1).optional(),
    channel: Identifier.optional().meta({
      description: `Without channel and version: ${defaultChannel}, or the newest version if there is no channel.`,
    }),
  })
  .refine((request) => request.version === undefined || request.channel === undefined, {
    message: 'take version or channel, not both',
    path: ['channel'],
  });

export const PromoteRequest = z.strictObject({
  id: Identifier,
  channel: Identifier,
  version: z.int().min(1),
});
export const PromoteResponse = z.strictObject({ id: z.string(), channel: z.string(), version: z.int() });

export const WritePromptRequest = z.strictObject({
  id: Identifier,
  content: z.string().max(serviceRequests.bytes.prompt),
});
