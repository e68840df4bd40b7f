import { access, constants, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { changedContents } from '../../src/engine/changes/changed-paths.ts';
import type { Container } from '../../src/engine/container.ts';
import { plainRuntimes } from '../../src/engine/port/engine-port.ts';
import { dockerOf } from './docker-of.ts';
import { shell, startedContainer, until } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

/**
 * The looks that may come out: the right one, and not to know, where this process cannot read the layer since
 * the engine is on another machine or keeps its layers otherwise.
 */
async function looks<Look>(container: Container, right: Look): Promise<(Look | undefined)[]> {
  if (!plainRuntimes.includes(engine.capabilities.defaultRuntime)) return [right, undefined];
  const inspected = await dockerOf(engine).getContainer(container.id).inspect();
  const { UpperDir = '' } = (inspected.GraphDriver?.Data ?? {}) as { UpperDir?: string };
  const isReadable = await access(UpperDir, constants.R_OK).then(
    () => true,
    () => false,
  );
  return isReadable ? [right] : [right, undefined];
}

test('a layer holds everything created, changed, deleted or renamed, and its empty folders', async () => {
  await using container = await startedContainer(engine);
  // Offsite's own files are mounted there; init writes /etc/hosts; and some engines link /etc/mtab.
  const theEngines = ['/offsite-shield', '/etc/hosts', '/etc/mtab', '/run/.containerenv'];
  expect(await looks(container, ['/workspace'])).toContainEqual(
    await container.layerPaths({ except: ['/run', '/dev', ...theEngines] }),
  );
  await shell(
    container,
    `mkdir -p /opt/made/empty; echo a > /opt/made/file; : > /usr/bin/join; chmod 700 /usr/bin/comm
ln -s /nowhere /etc/link; ln /usr/bin/fold /usr/bin/fold2; rm /etc/motd; echo x > /tmp/left-out
rm -r /etc/skel; mkdir /etc/skel; rm -r /usr/share/menu; chmod 711 /srv`,
  );
  const paths = await container.layerPaths({ except: ['/tmp', ...theEngines] });
  expect(
    await looks(container, [
      '/etc/link',
      '/etc/motd',
      '/etc/skel',
      '/opt/made/empty',
      '/opt/made/file',
      '/srv',
      '/usr/bin/comm',
      '/usr/bin/fold',
      '/usr/bin/fold2',
      '/usr/bin/join',
      '/usr/share/menu',
      '/workspace',
    ]),
  ).toContainEqual(paths?.toSorted());
});

test('a look while the first process is about to write the hosts file shows no change', async () => {
  await using container = await startedContainer(engine);
  const [known] = await looks(container, ['/workspace']);
  const { layer } = await engine.port.containers.hostFacts(container.id);
  const except = ['/run', '/dev', '/offsite-shield', '/etc/hosts', '/etc/mtab'];
  if (layer === undefined || engine.capabilities.product === 'Podman') return;
  const hosts = join(layer, 'etc/hosts');
  await until(() => hasHosts(hosts));
  const content = await readFile(hosts);
  // As it is for some milliseconds after a start.
  await rm(hosts);
  const looked = container.layerPaths({ except });
  await systemClock.sleep(100);
  await writeFile(hosts, content);
  expect(await looked).toEqual(known);
  // Nobody fills it again: so a sandbox looks whose agent emptied the folder.
  await rm(hosts);
  expect(await container.layerPaths({ except })).toEqual(['/workspace', '/etc']);
});

test('a changed file is a place to read even if its size and its times were restored', async () => {
  await using container = await startedContainer(engine);
  await shell(
    container,
    `cd /etc; touch -r login.defs /tmp/times; printf changed | dd of=login.defs conv=notrunc status=none
touch -r /tmp/times login.defs; mkdir -p /opt/made/d; echo a > /opt/made/d/file`,
  );
  const most = { changes: 1000, contents: 100 };
  const contents = await changedContents(container, { most, signal: AbortSignal.timeout(60_000) });
  expect(contents).toContainEqual({ path: '/opt/made', isAdded: true });
  expect(contents).not.toContainEqual(expect.objectContaining({ path: '/opt/made/d/file' }));
  const isFound = contents?.some(({ path }) => path === '/etc/login.defs');
  expect(await looks(container, true)).toContain(isFound || undefined);
});

test('a folder is untouched until something in it is made, changed or deleted, or it is replaced', async () => {
  await using image = await imageOf('mkdir -p /opt/kept');
  const touches = ['touch made', 'chmod 700 .', 'cd /; rm -r /workspace /opt; ln -s /tmp /opt'];
  for (const touch of touches) {
    await using container = await startedContainer(engine, image);
    expect(await looks(container, true)).toContain(await container.isUntouched('/workspace'));
    await shell(container, touch);
    expect(await looks(container, false), touch).toContain(await container.isUntouched('/workspace'));
    const isKept = !touch.includes('/opt');
    expect(await looks(container, isKept), touch).toContain(await container.isUntouched('/opt/kept'));
  }
});

test('files in a volume of the image are in no layer, so the layer is not used', async () => {
  await using image = await imageOf('true', 'VOLUME /workspace');
  await using container = await startedContainer(engine, image);
  expect(await container.isUntouched('/workspace')).toBeUndefined();
  expect(await container.layerPaths({ except: [] })).toBeUndefined();
});

/** An image of its own, with what a line of shell makes of the base image. */
async function imageOf(script: string, changes = 'LABEL made-by=test') {
  await using container = await startedContainer(engine);
  await shell(container, script);
  const { Id: imageId } = (await dockerOf(engine).getContainer(container.id).commit({ changes })) as {
    Id: string;
  };
  return {
    imageId,
    async [Symbol.asyncDispose]() {
      await dockerOf(engine).getImage(imageId).remove({ force: true });
    },
  };
}

const hasHosts = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
