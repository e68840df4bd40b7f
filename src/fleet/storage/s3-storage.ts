import type { S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { fleetStorage } from '../../bounds/fleet.ts';
import type { S3Storage } from '../../suite/fleet-config.ts';
import { damaged, hashOf, noteIn, resultIn, Sha256 } from './contents.ts';
import type { FleetStorage, IndexedResult, NoteKind } from './storage.ts';

/** What this file uses of the packages of AWS. */
type Sdk = typeof import('@aws-sdk/client-s3');

/**
 * A storage in a bucket of Amazon S3, or of a service that speaks its protocol: `contents/ab/abcd…` and
 * `results/<batch>/<trial>`, below a prefix. Each content is one object, and the service checks its SHA-256
 * before the object gets its name, so an object that can be read is complete. Keys come from where AWS's
 * programs take them: the environment, `~/.aws`, or the machine's role. Throws `S3_MISSING` if the package is
 * not installed.
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
  const keyOf = (sha256: string) => `${below}contents/${sha256.slice(0, 2)}/${Sha256.parse(sha256)}`;
  // Ids come from the service and may hold anything, so their hashes name the objects.
  const folderOf = (batch: string) => `${below}results/${hashOf(batch)}/`;
  const noteOf = (kind: NoteKind, name: string) => `${below}${kind}/${hashOf(name)}.json`;
  const put = (key: string, content: Uint8Array, sha256: string) =>
    call(`store ${key}`, ({ sdk, client, signal }) => {
      const ChecksumSHA256 = Buffer.from(sha256, 'hex').toString('base64');
      const object = { Bucket: bucket, Key: key, Body: content, ChecksumSHA256 };
      return client.send(new sdk.PutObjectCommand(object), { abortSignal: signal });
    });
  const get = (key: string, most: number) =>
    call(`read ${key}`, async ({ sdk, client, signal }) => {
      const request = new sdk.GetObjectCommand({ Bucket: bucket, Key: key });
      const { Body, ContentLength = 0 } = await client.send(request, { abortSignal: signal });
      return bounded(key, Body as AsyncIterable<Uint8Array> | undefined, { most, declared: ContentLength });
    });
  const has = (sha256: string) =>
    call(`look for ${sha256}`, async ({ sdk, client, signal }) => {
      try {
        const request = new sdk.HeadObjectCommand({ Bucket: bucket, Key: keyOf(sha256) });
        await client.send(request, { abortSignal: signal });
        return true;
      } catch (error) {
        if (statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket') return false;
        throw error;
      }
    });
  return {
    has,
    async put(sha256, content) {
      if (!(await has(sha256))) await put(keyOf(sha256), content, sha256);
    },
    async get(sha256, most = fleetStorage.bytes.content) {
      const content = await get(keyOf(sha256), most);
      if (hashOf(content) === sha256) return content;
      throw damaged(`${keyOf(sha256)} in the bucket ${bucket}`, 'its hash does not match');
    },
    async addResult(batch, result) {
      const text = JSON.stringify(result);
      const name = hashOf(`${result.run}/${result.ordinal}`);
      await put(`${folderOf(batch)}${name}.json`, Buffer.from(text), hashOf(text));
    },
    async *results(batch): AsyncGenerator<IndexedResult> {
      let from: string | undefined;
      do {
        const page = await call('list results', ({ sdk, client, signal }) => {
          const request = { Bucket: bucket, Prefix: folderOf(batch), ContinuationToken: from };
          return client.send(new sdk.ListObjectsV2Command(request), { abortSignal: signal });
        });
        for (const { Key = '' } of page.Contents ?? []) {
          yield resultIn(await get(Key, fleetStorage.bytes.result), Key);
        }
        from = page.IsTruncated ? page.NextContinuationToken : undefined;
      } while (from !== undefined);
    },
    async putNote(kind, name, note) {
      const text = JSON.stringify(note);
      await put(noteOf(kind, name), Buffer.from(text), hashOf(text));
    },
    async note(kind, name) {
      try {
        return noteIn(await get(noteOf(kind, name), fleetStorage.bytes.result), noteOf(kind, name));
      } catch (error) {
        if (error instanceof OffsiteError && error.code === 'FLEET_CONTENT_MISSING') return undefined;
        throw error;
      }
    },
  };
}

async function connect({ region, endpoint, pathStyle = endpoint !== undefined }: S3Storage) {
  const sdk = await import('@aws-sdk/client-s3').catch((error: unknown) => {
    const { code, message = '' } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_MODULE_NOT_FOUND' || !message.includes('@aws-sdk/')) throw error;
    throw new OffsiteError('a storage in a bucket needs the package @aws-sdk/client-s3', {
      code: 'S3_MISSING',
      kind: 'input',
      hint: 'Install it beside Offsite: npm install @aws-sdk/client-s3',
      cause: error,
    });
  });
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
  if (name === 'NoSuchKey' || (name === 'NotFound' && statusOf(error) === 404))
    return new OffsiteError(`the bucket ${bucket} does not have it: cannot ${what}`, {
      code: 'FLEET_CONTENT_MISSING',
      kind: 'infrastructure',
      cause: error,
    });
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
