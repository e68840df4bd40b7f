import { z } from 'zod';
import { serviceRequests } from '../bounds/callers.ts';

export const permissions = [
  'prompts:read',
  'prompts:write',
  'channels:read',
  'channels:write',
  'apiKeys:read',
  'apiKeys:write',
  'members:read',
  'members:write',
  'evals:read',
  'evals:write',
  'credentials:read',
  'credentials:write',
  'credentials:use',
  'organization:admin',
  'platform:impersonate',
] as const;

export const Permission = z.enum(permissions);
export type Permission = z.infer<typeof Permission>;

export const Organization = z.strictObject({ id: z.string(), name: z.string(), slug: z.string() });
export type Organization = z.infer<typeof Organization>;

export const Credential = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('apiKey'),
    name: z.string().nullable(),
    start: z.string().nullable().meta({ description: 'The first characters of the key, never the secret.' }),
  }),
  z.strictObject({ kind: z.literal('oauth') }),
]);
export type Credential = z.infer<typeof Credential>;

export const Whoami = z.strictObject({
  credential: Credential,
  organization: Organization,
  permissions: z.array(Permission),
});
export type Whoami = z.infer<typeof Whoami>;

/**
 * A name that other records refer to. It is not empty, not long, and can be encoded as UTF-8: no lone
 * surrogates, no NUL.
 */
export const Identifier = z
  .string()
  .min(1)
  .max(serviceRequests.bytes.id)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), {
    message: 'must be well-formed text without NUL',
  });

/** The name of a suite or a case, for people. Each case of a batch is stored with that of its suite. */
const Name = z.string().max(serviceRequests.bytes.id);

/**
 * A string for which the specification does not list all values. `known` are the values that this service
 * writes. Others are accepted.
 */
export function openValue(...known: string[]) {
  return z.string().meta({ examples: known });
}

/** A count, an index or a size: a whole number, at least 0. */
export const Count = z.int().min(0);

/** Epoch milliseconds. The fields `at`, `startedAt` and `startedAtMillis` inside a trial use this. */
export const EpochMillis = z.number().meta({ description: 'Epoch milliseconds.' });

/** ISO 8601 date-time. The `...At` fields of a run record use this. */
export const DateTime = z.string().meta({ format: 'date-time' });

/** Schemas of an evaluation's definition, as `evals.start` carries it. */

export const Suite = z.strictObject({
  id: Identifier,
  name: Name,
  prompt: z.string().max(serviceRequests.bytes.prompt).meta({ description: 'The prompt the cases share.' }),
});
export type Suite = z.infer<typeof Suite>;

export const SourceFile = z.strictObject({ path: z.string().min(1), content: z.string() });
export type SourceFile = z.infer<typeof SourceFile>;

export const Validator = z.strictObject({
  name: z.string(),
  source: z.string(),
  capture: z.boolean().optional(),
  manifest: z
    .array(z.strictObject({ index: z.int().min(0), name: z.string() }))
    .max(serviceRequests.count.manifest)
    .optional(),
  sourceFiles: z.array(SourceFile).optional(),
});
export type Validator = z.infer<typeof Validator>;

const SimulatedUser = z.strictObject({
  kind: z.literal('simulated'),
  goal: z.string(),
  prompt: z.string(),
});

export const Case = z.strictObject({
  id: Identifier,
  name: Name,
  user: SimulatedUser.optional(),
  prepare: z.strictObject({ name: z.string(), source: z.string() }).optional(),
  source: z.strictObject({ kind: z.literal('empty') }).optional(),
  tags: z.array(z.string().max(serviceRequests.bytes.tag)).max(serviceRequests.count.tags).optional(),
  variables: z.record(z.string(), z.unknown()).optional(),
  validator: Validator.optional(),
  verify: z.string().optional(),
});
export type Case = z.infer<typeof Case>;

export const Variant = z.strictObject({
  model: z.string().min(1).max(serviceRequests.bytes.id),
  credentials: z
    .strictObject({ harnessConnectionId: Identifier, sandboxConnectionId: Identifier })
    .optional(),
});
export type Variant = z.infer<typeof Variant>;

export const Trigger = z.strictObject({
  url: z
    .string()
    .meta({ description: 'Client-reported context about what started the run; not authorization.' }),
});
export type Trigger = z.infer<typeof Trigger>;

export const limits = { cases: 100, variants: 20, trials: 10, runsPerPage: 20 } as const;

export const StartRequest = z.strictObject({
  suite: Suite,
  cases: z.array(Case).min(1).max(limits.cases),
  variants: z.array(Variant).min(1).max(limits.variants),
  trials: z.int().min(1).max(limits.trials),
  local: z.boolean().optional(),
  trigger: Trigger.optional(),
});
export type StartRequest = z.infer<typeof StartRequest>;

export const StartResponse = z.strictObject({
  id: z.string().meta({ description: 'The batch.' }),
  runs: z.array(z.strictObject({ id: z.string(), caseId: z.string(), variantIndex: z.number() })),
});
export type StartResponse = z.infer<typeof StartResponse>;

/**
 * The case with the defaults of its missing fields. A part without a default (a user, a script) stays
 * missing.
 */
export function wholeCase({ validator, ...request }: Case): Case {
  return {
    source: { kind: 'empty' },
    tags: [],
    variables: {},
    ...request,
    ...(validator && { validator: { capture: true, manifest: [], sourceFiles: [], ...validator } }),
  };
}
