import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readHostFacts } from '../../src/engine/docker/own-folder.ts';
import { dockerOf } from './docker-of.ts';
import { startedContainer } from './engine-fixture.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

/** As the engine answers. */
async function answered(id: string) {
  const { initPid, layer, storage } = await engine.port.containers.state(id);
  return { initPid, layer, storage };
}

test("what the engine's own files say of a container is what it answers, also after a restart", async () => {
  await using container = await startedContainer(engine);
  const { id } = container;
  expect(await engine.port.containers.hostFacts(id)).toMatchObject(await answered(id));
  await engine.port.containers.kill(id);
  await engine.port.containers.start(id);
  expect(await engine.port.containers.hostFacts(id)).toMatchObject(await answered(id));
});

test('the engine itself is asked about a container that has a volume, or that does not run', async () => {
  await using made = await startedContainer(engine);
  const changes = 'VOLUME /workspace';
  const { Id: imageId } = (await dockerOf(engine).getContainer(made.id).commit({ changes })) as {
    Id: string;
  };
  const { rootFolder: path } = await engine.port.facts();
  try {
    await using container = await startedContainer(engine, { imageId });
    for (const { id } of [container, made]) {
      if (id === made.id) await engine.port.containers.kill(id);
      // Not by the requests of the shared engine: it asks something besides.
      expect(await readHostFacts({ path }, id)).toBeUndefined();
      expect(await engine.port.containers.hostFacts(id)).toMatchObject(await answered(id));
    }
  } finally {
    await dockerOf(engine).getImage(imageId).remove({ force: true });
  }
});

test('files of an engine that keeps them otherwise, or on another machine, say nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'offsite-own-folder-'));
  try {
    const id = 'a'.repeat(64);
    const files = {
      [`containers/${id}/config.v2.json`]: { State: { Pid: 7 }, Driver: 'overlay2', MountPoints: {} },
      [`containers/${id}/hostconfig.json`]: { Runtime: 'runc' },
    };
    const mountId = `image/overlay2/layerdb/mounts/${id}/mount-id`;
    const whole = join(folder, 'whole');
    for (const [path, content] of Object.entries(files))
      await put(join(whole, path), JSON.stringify(content));
    await put(join(whole, mountId), 'layer-7');
    const layer = join(whole, 'overlay2/layer-7/diff');
    await mkdir(layer, { recursive: true });
    expect(await readHostFacts({ path: whole }, id)).toEqual({ initPid: 7, layer, storage: [layer] });
    expect(await readHostFacts({ path: undefined }, id)).toBeUndefined();
    expect(await readHostFacts({ path: whole }, 'b'.repeat(64))).toBeUndefined();
    for (const missing of [...Object.keys(files), mountId, 'overlay2/layer-7/diff']) {
      const other = join(folder, 'other');
      await cp(whole, other, { recursive: true });
      await rm(join(other, missing), { recursive: true });
      expect(await readHostFacts({ path: other }, id), missing).toBeUndefined();
      await rm(other, { recursive: true });
    }
    const [config = ''] = Object.keys(files);
    for (const content of ['', '{"State":', 'null', '{"State":{"Pid":0},"Driver":"overlay2"}', '[]', '{}']) {
      await writeFile(join(whole, config), content);
      expect(await readHostFacts({ path: whole }, id), content).toBeUndefined();
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

async function put(path: string, content: string) {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, content);
}
