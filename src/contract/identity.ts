import { z } from 'zod';

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
