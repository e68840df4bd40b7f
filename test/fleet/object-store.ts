import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { execa, type ResultPromise } from 'execa';
import { objectStore } from '../../scripts/set-up/test-servers.ts';
import { findProgram } from '../../scripts/set-up/wheel-program.ts';
import type { S3Storage } from '../../src/suite/fleet-config.ts';
import { freePort } from '../free-port.ts';

/** A real object store, SeaweedFS, with one bucket. */
export interface ObjectStore extends AsyncDisposable {
  /** As `fleet.storage.s3` of offsite.yaml. */
  config: S3Storage;
  /** The variables with its keys. */
  env: Record<string, string>;
  client: S3Client;
  /** Kills it as a machine that loses power would, and resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts it again, with what it has stored. */
  start(): Promise<void>;
}

const keys = { accessKeyId: 'key-for-tests', secretAccessKey: 'secret-for-tests' };
/** May make buckets, which others may not. */
const owner = { accessKeyId: 'key-of-owner', secretAccessKey: 'secret-of-owner' };

/** @param folder keeps what is stored */
export async function openObjectStore(folder: string): Promise<ObjectStore> {
  const program = await findProgram(objectStore, process.env);
  if (program === undefined) throw new Error('no weed program: run `npm test` once, which brings it');
  const data = join(folder, 'objects');
  mkdirSync(data);
  const users = join(folder, 'users.json');
  const identity = (name: string, { accessKeyId, secretAccessKey }: typeof keys, actions: string[]) => ({
    name,
    actions,
    credentials: [{ accessKey: accessKeyId, secretKey: secretAccessKey }],
  });
  const identities = [
    identity('owner', owner, ['Admin', 'Read', 'Write', 'List']),
    identity('tests', keys, ['Read', 'Write', 'List']),
  ];
  writeFileSync(users, JSON.stringify({ identities }));
  const ports: number[] = [];
  for (let n = 0; n < 8; n++) ports.push(await freePort());
  const endpoint = `http://127.0.0.1:${ports[6]}`;
  const bucket = 'fleet-of-tests';
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: owner,
    maxAttempts: 1,
  });
  let running: ResultPromise<{ reject: false; stdin: 'ignore'; all: true }> | undefined;
  const store: ObjectStore = {
    config: { bucket, endpoint },
    env: { AWS_ACCESS_KEY_ID: keys.accessKeyId, AWS_SECRET_ACCESS_KEY: keys.secretAccessKey },
    client,
    async start() {
      const [master, masterRpc, volume, volumeRpc, filer, filerRpc, s3, s3Rpc] = ports;
      const child = execa(
        program,
        [
          'server',
          `-dir=${data}`,
          '-ip=127.0.0.1',
          '-ip.bind=127.0.0.1',
          '-volume.max=20',
          `-master.port=${master}`,
          `-master.port.grpc=${masterRpc}`,
          '-master.volumeSizeLimitMB=64',
          `-volume.port=${volume}`,
          `-volume.port.grpc=${volumeRpc}`,
          '-filer',
          `-filer.port=${filer}`,
          `-filer.port.grpc=${filerRpc}`,
          `-filer.localSocket=${join(folder, 'filer.sock')}`,
          '-s3',
          `-s3.port=${s3}`,
          `-s3.port.grpc=${s3Rpc}`,
          `-s3.config=${users}`,
        ],
        { reject: false, stdin: 'ignore', all: true },
      );
      running = child;
      let said: string | undefined;
      void child.then(({ all }) => {
        said = all;
      });
      for (const end = Date.now() + 120_000; ; await sleep(200)) {
        try {
          await client.send(new CreateBucketCommand({ Bucket: bucket }));
          return;
        } catch (error) {
          if (/BucketAlready/.test((error as Error).name)) return;
          if (said !== undefined) throw new Error(`the object store ended: ${said}`, { cause: error });
          if (Date.now() > end) throw error;
        }
      }
    },
    async kill() {
      running?.kill('SIGKILL');
      await running;
    },
    async [Symbol.asyncDispose]() {
      await store.kill();
      client.destroy();
    },
  };
  await store.start();
  return store;
}
