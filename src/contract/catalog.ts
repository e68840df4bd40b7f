import { z } from 'zod';
import { Identifier, openValue } from './primitives.ts';
import { Distribution } from './record.ts';

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

export const BaselineRequest = z.strictObject({
  caseId: Identifier,
  variant: Identifier.meta({ description: "A variant's id." }),
});
export const BaselineResponse = z.strictObject({
  runs: z.number().meta({ description: 'Platform runs of the cell. Reported runs never count.' }),
  distribution: Distribution.optional().meta({
    description: 'The distribution over their trials. Absent while there are none.',
  }),
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

export const WritePromptRequest = z.strictObject({ id: Identifier, content: z.string() });
