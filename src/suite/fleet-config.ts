import { z } from 'zod';
import { Duration } from './quantities.ts';
import { NonEmpty } from './text-source.ts';
import { VariableName } from './variables.ts';

const File = NonEmpty;

/** A bucket. Keys are taken from the environment, `~/.aws`, or the machine's role. */
const S3Storage = z.strictObject({
  bucket: NonEmpty.describe('The name of the bucket.'),
  prefix: z.string().optional().describe('What the names of all objects begin with.'),
  region: NonEmpty.optional().describe('The region of the bucket.'),
  endpoint: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('The address of a service other than Amazon S3.'),
  pathStyle: z
    .boolean()
    .optional()
    .describe('Whether the bucket is named in the path. Default: true if there is an endpoint.'),
});
export type S3Storage = z.infer<typeof S3Storage>;

/** How this machine reaches the fleet, and what it offers as a worker. */
export const FleetConfig = z.strictObject({
  address: NonEmpty.default('127.0.0.1:7233').describe("The Temporal server's address, as host:port."),
  namespace: NonEmpty.default('default').describe('The namespace at the Temporal server.'),
  apiKeyEnv: VariableName.optional().describe(
    'The name of the environment variable that holds the key for Temporal.',
  ),
  tls: z
    .union([
      z.boolean(),
      z
        .strictObject({
          serverCa: File.optional().describe(
            "Certificates of the authority that signs the server's certificate.",
          ),
          clientCert: File.optional().describe('The certificate of this machine.'),
          clientKey: File.optional().describe('The key of that certificate.'),
        })
        .refine(({ clientCert, clientKey }) => (clientCert === undefined) === (clientKey === undefined), {
          error: 'expected clientCert and clientKey, or neither',
        }),
    ])
    .optional()
    .describe('true, or PEM files. Default: no TLS, unless there is a key.'),
  taskQueue: z
    .string()
    .regex(/^[\w.-]{1,100}$/, 'expected letters, digits and ._-')
    .default('offsite')
    .describe('Workers and batches meet under this name.'),
  storage: z
    .union([
      z.strictObject({
        folder: NonEmpty.describe('A folder that every machine of the fleet mounts.'),
      }),
      z.strictObject({
        s3: S3Storage.describe('A bucket of Amazon S3, or of a service with its API.'),
      }),
    ])
    .optional()
    .describe(
      'Where the machines of the fleet share plans, records and artifacts: a folder that all of them mount, or a bucket.',
    ),
  codecKeyEnv: VariableName.optional().describe(
    'The name of the environment variable with 64 hexadecimal digits, with which everything that ' +
      'Temporal stores is encrypted.',
  ),
  heartbeat: Duration.default(60_000)
    .refine((ms) => ms >= 3_000 && ms <= 3_600_000, 'expected a duration from 3s to 1h')
    .describe('Without a heartbeat for this long, a trial of a batch goes to another worker.'),
  pools: z
    .array(z.string().regex(/^[\w-]{1,40}$/, 'expected letters, digits, - and _'))
    .min(1)
    .default(['default'])
    .describe('The pools that a worker joins. `fleet run --pool` names one.'),
});
export type FleetConfig = z.infer<typeof FleetConfig>;
