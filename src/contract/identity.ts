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
export const Name = z.string().max(serviceRequests.bytes.id);

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
