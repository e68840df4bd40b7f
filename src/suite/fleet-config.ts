import { z } from 'zod';
import { Duration } from './quantities.ts';
import { VariableName } from './variables.ts';

const File = z.string().min(1);

/** A bucket. Keys are taken from the environment, `~/.aws`, or the machine's role. */
const S3Storage = z.strictObject({
  bucket: z.string().min(1).meta({ description: 'The name of the bucket.' }),
  prefix: z.string().optional().meta({ description: 'What the names of all objects begin with.' }),
  region: z.string().min(1).optional().meta({ description: 'The region of the bucket.' }),
  endpoint: z
    .url({ protocol: /^https?$/ })
    .optional()
    .meta({ description: 'The address of a service other than Amazon S3.' }),
  pathStyle: z.boolean().optional().meta({
    description: 'Whether the bucket is named in the path. Default: true if there is an endpoint.',
  }),
});
export type S3Storage = z.infer<typeof S3Storage>;

/** How this machine reaches the fleet, and what it offers as a worker. */
export const FleetConfig = z.strictObject({
  address: z
    .string()
    .min(1)
    .default('127.0.0.1:7233')
    .meta({ description: "The Temporal server's address, as host:port." }),
  namespace: z
    .string()
    .min(1)
    .default('default')
    .meta({ description: 'The namespace at the Temporal server.' }),
  apiKeyEnv: VariableName.optional().meta({
    description: 'The name of the environment variable that holds the key for Temporal.',
  }),
  tls: z
    .union([
      z.boolean(),
      z
        .strictObject({
          serverCa: File.optional().meta({
            description: "Certificates of the authority that signs the server's certificate.",
          }),
          clientCert: File.optional().meta({ description: 'The certificate of this machine.' }),
          clientKey: File.optional().meta({ description: 'The key of that certificate.' }),
        })
        .refine(({ clientCert, clientKey }) => (clientCert === undefined) === (clientKey === undefined), {
          error: 'expected clientCert and clientKey, or neither',
        }),
    ])
    .optional()
    .meta({ description: 'true, or PEM files. Default: no TLS, unless there is a key.' }),
  taskQueue: z
    .string()
    .regex(/^[\w.-]{1,100}$/, 'expected letters, digits and ._-')
    .default('offsite')
    .meta({ description: 'Workers and batches meet under this name.' }),
  storage: z
    .union([
      z.strictObject({
        folder: z.string().min(1).meta({ description: 'A folder that every machine of the fleet mounts.' }),
      }),
      z.strictObject({
        s3: S3Storage.meta({ description: 'A bucket of Amazon S3, or of a service with its API.' }),
      }),
    ])
    .optional()
    .meta({
      description:
        'Where the machines of the fleet share plans, records and artifacts: a folder that all of them mount, or a bucket.',
    }),
  codecKeyEnv: VariableName.optional().meta({
    description:
      'The name of the environment variable with 64 hexadecimal digits, with which everything that ' +
      'Temporal stores is encrypted.',
  }),
  heartbeat: Duration.default(60_000)
    .refine((ms) => ms >= 3_000 && ms <= 3_600_000, 'expected a duration from 3s to 1h')
    .meta({ description: 'Without a heartbeat for this long, a trial of a batch goes to another worker.' }),
  pools: z
    .array(z.string().regex(/^[\w-]{1,40}$/, 'expected letters, digits, - and _'))
    .min(1)
    .default(['default'])
    .meta({ description: 'The pools that a worker joins. `fleet run --pool` names one.' }),
});
export type FleetConfig = z.infer<typeof FleetConfig>;
