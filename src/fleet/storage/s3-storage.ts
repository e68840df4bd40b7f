import type { S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import { messageOf, OffsiteError, withPackage } from '../../base/offsite-error.ts';
import { fleetStorage } from '../../bounds/fleet.ts';
import type { S3Storage } from '../../suite/fleet-config.ts';
import { damaged, type FleetStorage, storageIn } from './storage.ts';

/** What this file uses of the packages of AWS. */
type Sdk = typeof import('@aws-sdk/client-s3');

/**
 * A storage in a bucket of Amazon S3, or of a service that speaks its protocol, below a prefix. The service
 * checks an object's SHA-256 before the object gets its name, so an object that can be read is complete. Keys
 * come from where AWS's programs take them: the environment, `~/.aws`, or the machine's role. Throws
 * `S3_MISSING` if the package is not installed.
 */
export function s3Storage(config: S3Storage): FleetStorage {
  const { bucket, prefix = '' } = config;
  const below = prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`;
  let opened: Promise<{ sdk: Sdk; client: S3Client }> | undefined;
  const open = () => {
    opened ??= connect(config);
    return opened;
  };
  const call = async <Result>(
    what: string,
    ask: (parts: { sdk: Sdk; client: S3Client; signal: AbortSignal }) => Promise<Result>,
  ): Promise<Result> => {
    const parts = await open();
    try {
      return await ask({ ...parts, signal: AbortSignal.timeout(fleetStorage.time.transfer) });
    } catch (error) {
      throw error instanceof OffsiteError ? error : failure(what, bucket, error);
    }
  };
  const at = (path: string) => `${below}${path}`;
  return storageIn({
    named: (path) => `${at(path)} in the bucket ${bucket}`,
    has: (path) =>
      call(`look for ${at(path)}`, async ({ sdk, client, signal }) => {
        try {
          await client.send(new sdk.HeadObjectCommand({ Bucket: bucket, Key: at(path) }), {
            abortSignal: signal,
          });
          return true;
        } catch (error) {
          if (statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket') return false;
          throw error;
        }
      }),
    read: (path, most) =>
      call(`read ${at(path)}`, async ({ sdk, client, signal }) => {
        const request = new sdk.GetObjectCommand({ Bucket: bucket, Key: at(path) });
        try {
          const { Body, ContentLength: declared = 0 } = await client.send(request, { abortSignal: signal });
          return await bounded(at(path), Body as AsyncIterable<Uint8Array> | undefined, { most, declared });
        } catch (error) {
          const name = nameOf(error);
          if (name === 'NoSuchKey' || (name === 'NotFound' && statusOf(error) === 404)) return undefined;
          throw error;
        }
      }),
    async write(path, content, sha256) {
      const ChecksumSHA256 = Buffer.from(sha256, 'hex').toString('base64');
      const object = { Bucket: bucket, Key: at(path), Body: content, ChecksumSHA256 };
      await call(`store ${at(path)}`, ({ sdk, client, signal }) =>
        client.send(new sdk.PutObjectCommand(object), { abortSignal: signal }),
      );
    },
    async *list(path) {
      let from: string | undefined;
      do {
        const page = await call('list results', ({ sdk, client, signal }) => {
          const request = { Bucket: bucket, Prefix: `${at(path)}/`, ContinuationToken: from };
          return client.send(new sdk.ListObjectsV2Command(request), { abortSignal: signal });
        });
        for (const { Key = '' } of page.Contents ?? []) yield Key.slice(below.length);
        from = page.IsTruncated ? page.NextContinuationToken : undefined;
      } while (from !== undefined);
    },
  });
}

async function connect({ region, endpoint, pathStyle = endpoint !== undefined }: S3Storage) {
  const sdk = await withPackage(
    {
      named: '@aws-sdk/',
      code: 'S3_MISSING',
      install: '@aws-sdk/client-s3',
      needs: 'a storage in a bucket needs the package @aws-sdk/client-s3',
    },
    () => import('@aws-sdk/client-s3'),
  );
  const client = new sdk.S3Client({
    ...(region !== undefined && { region }),
    ...(endpoint !== undefined && { endpoint, region: region ?? 'us-east-1' }),
    forcePathStyle: pathStyle,
    maxAttempts: 5,
    requestHandler: {
      connectionTimeout: fleetStorage.time.connect,
      requestTimeout: fleetStorage.time.silence,
    },
  });
  return { sdk, client };
}

/** Reads an object up to a limit. Counts the bytes, because the declared length may be wrong. */
async function bounded(
  key: string,
  body: AsyncIterable<Uint8Array> | undefined,
  { most, declared }: { most: number; declared: number },
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = declared > most ? declared : 0;
  if (size <= most)
    for await (const chunk of body ?? []) {
      size += chunk.length;
      if (size > most) break;
      chunks.push(chunk);
    }
  if (size > most) throw damaged(key, `it is larger than ${most} bytes`);
  return Buffer.concat(chunks);
}

const hints: Record<string, string> = {
  NoSuchBucket: 'Make the bucket, or correct fleet.storage.s3.bucket of offsite.yaml.',
  AccessDenied: 'Permit the keys of this machine to read, write and list the bucket, or correct its name.',
  InvalidAccessKeyId: 'Correct AWS_ACCESS_KEY_ID, or the profile that AWS_PROFILE names.',
  SignatureDoesNotMatch: 'Correct AWS_SECRET_ACCESS_KEY.',
  CredentialsProviderError: 'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.',
  Forbidden: 'Permit the keys of this machine to read, write and list the bucket, or correct its name.',
};

/** A failure of the service or of the connection to it. Only the first can be the user's mistake. */
function failure(what: string, bucket: string, error: unknown): OffsiteError {
  const name = nameOf(error);
  const hint = hints[name];
  return new OffsiteError(`cannot ${what} in the bucket ${bucket}: ${name}: ${messageOf(error)}`, {
    code: 'FLEET_STORAGE_UNUSABLE',
    kind: hint === undefined ? 'infrastructure' : 'input',
    hint: hint ?? 'Check that the service of the bucket answers: fleet.storage.s3 of offsite.yaml.',
    cause: error,
  });
}

function nameOf(error: unknown): string {
  return (error as Partial<S3ServiceException>).name ?? 'Error';
}

function statusOf(error: unknown): number | undefined {
  return (error as Partial<S3ServiceException>).$metadata?.httpStatusCode;
}
