import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { VolumeRequest } from '../../src/engine/snapshot/build.ts';
import { dockerOf } from './docker-of.ts';
import { removeRepository, shell, startedContainer, testEngine, testSpec } from './engine-fixture.ts';

const path = '/offsite/cli';
const snapshots = { repository: `offsite-test/${randomUUID()}` };
let engine: Engine;
/** The name of a volume with a file that says so. */
let kept: string;
beforeAll(async () => {
  engine = await testEngine({ snapshots });
  kept = (await engine.volume(await request(writes('kept')))).name;
});
afterAll(async () => {
  await engine?.[Symbol.asyncDispose]();
  await using last = await testEngine({ snapshots });
  await removeRepository(last);
});

async function request(
  build: (container: Container) => Promise<unknown>,
  key = randomUUID(),
): Promise<VolumeRequest> {
  const { imageId, ...container } = await testSpec(engine);
  return { parentImageId: imageId, container, path, key, build };
}

const writes = (text: string) => (container: Container) => shell(container, `echo ${text} > ${path}/file`);

test('is filled once for all who ask, by whichever engine connection, and each container reads it', async () => {
  await using other = await testEngine({ snapshots });
  let fills = 0;
  const asked = await request(async (container) => {
    fills++;
    await writes('filled')(container);
  });
  const volumes = await Promise.all([engine.volume(asked), engine.volume(asked), other.volume(asked)]);
  expect(fills).toBe(1);
  expect(new Set(volumes.map(({ name }) => name)).size).toBe(1);
  expect(volumes.filter(({ built }) => built)).toHaveLength(1);
  const mounts = [{ volume: volumes[0]?.name ?? '', path, readOnly: true }];
  await using container = await startedContainer(engine, { mounts });
  expect((await shell(container, `cat ${path}/file`)).stdout.text).toBe('filled\n');
});

test('of one name is made for all who make it at the same time', async () => {
  const name = `offsite-test-${randomUUID()}`;
  try {
    await Promise.all(Array.from({ length: 8 }, () => engine.port.createVolume(name, {})));
  } finally {
    await engine.port.remove('volume', name);
  }
});

test('that is read-only can be changed by nobody in a container, however it tries', async () => {
  const mounts = [{ volume: kept, path, readOnly: true }];
  {
    await using container = await startedContainer(engine, { mounts });
    const attack = [
      `echo forged > ${path}/file`,
      `rm -f ${path}/file`,
      `mv ${path}/file /tmp`,
      `chmod 777 ${path}/file`,
      `touch ${path}/new`,
      `mount -o remount,rw ${path}`,
      `mount --bind /tmp ${path}`,
      `umount ${path}`,
      `mv ${path} /tmp/cli`,
      `ln ${path}/file /tmp/file && echo forged > /tmp/file`,
    ].map((line) => `(${line}) 2> /dev/null && echo 'worked: ${line}'`);
    expect((await shell(container, attack.join('\n'))).stdout.text).toBe('');
    // Even what is bound over the folder that it is in is only in this container.
    await shell(container, `mv /offsite /moved; mkdir -p ${path}; echo forged > ${path}/file`);
    // Blocks of the disk count, for folders too.
    expect(await container.diskUse()).toBeLessThan(128 * 1024);
  }
  await using next = await startedContainer(engine, { mounts });
  expect((await shell(next, `cat ${path}/file; ls ${path}`)).stdout.text).toBe('kept\nfile\n');
});

test('has no part in what changed, and no snapshot has it', async () => {
  const mounts = [{ volume: kept, path, readOnly: true }];
  await using container = await startedContainer(engine, { mounts });
  await shell(container, 'touch /own');
  const changed: string[] = [];
  for await (const change of container.changes()) changed.push(change.path);
  expect(changed).toContain('/own');
  expect(changed).not.toContain(`${path}/file`);
  expect((await container.layerPaths({ except: [] })) ?? []).not.toContain(`${path}/file`);
  const tag = randomUUID();
  const imageId = await container.commit({ repository: snapshots.repository, tag, labels: {} });
  await using later = await startedContainer(engine, { imageId });
  expect((await shell(later, `ls /own ${path}`)).stdout.text).toBe(`/own\n\n${path}:\n`);
});

test('whose build fails leaves none, and the next request builds it', async () => {
  const key = randomUUID();
  const failing = await request(() => Promise.reject(new Error('no registry')), key);
  await expect(engine.volume(failing)).rejects.toThrow('no registry');
  const { name, built } = await engine.volume(await request(writes('later'), key));
  expect(built).toBe(true);
  expect(await dockerOf(engine).getVolume(name).inspect()).toMatchObject({ Name: name });
});

test('that somebody removed is filled again', async () => {
  const asked = await request(writes('again'));
  await using first = await testEngine({ snapshots });
  const { name } = await first.volume(asked);
  await first[Symbol.asyncDispose]();
  await dockerOf(engine).getVolume(name).remove();
  expect(await engine.volume(asked)).toEqual({ name, built: true });
});

test('is evicted with its snapshot, with its bytes counted, but not while an agent holds it', async () => {
  const holder = await testEngine({ snapshots });
  const asked = await request((container) => shell(container, `head -c 3000000 /dev/zero > ${path}/zeros`));
  const { name } = await holder.volume({ ...asked, description: 'zeros' });
  const withZeros = async () =>
    (await engine.keptSnapshots()).filter(({ description }) => description === 'zeros');
  const [snapshot] = await withZeros();
  expect(snapshot).toMatchObject({ volume: name });
  expect(snapshot?.bytes).toBeGreaterThan(3_000_000);
  expect(await engine.removeSnapshots(await withZeros())).toEqual([]);
  await holder[Symbol.asyncDispose]();
  expect(await engine.removeSnapshots(await withZeros())).toHaveLength(1);
  await expect(dockerOf(engine).getVolume(name).inspect()).rejects.toMatchObject({ statusCode: 404 });
});

test('that an agent left half filled is swept hours later, and complete ones stay', async () => {
  const half = `offsite-test-${randomUUID()}`;
  const labels = (createdAt: number) => ({
    offsite: '1',
    'offsite.role': 'volume',
    'offsite.instance': '',
    'offsite.volume': half,
    'offsite.created': String(createdAt),
  });
  await engine.port.createVolume(half, labels(Date.now()));
  const swept = async () => (await engine.sweep(undefined, { dryRun: true })).removed.map(({ id }) => id);
  expect(await swept()).not.toContain(half);
  await engine.port.remove('volume', half);
  await engine.port.createVolume(half, labels(Date.now() - 3 * 3_600_000));
  const { removed } = await engine.sweep();
  expect(removed.map(({ id }) => id)).toContain(half);
  expect(removed.map(({ id }) => id)).not.toContain(kept);
});
