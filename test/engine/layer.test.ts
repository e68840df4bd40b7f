import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from './docker-of.ts';
import { shell, startedContainer, testEngine } from './engine-fixture.ts';

/**
 * Where tests do not run on the engine's own machine, or may not read its disk, each look says that it does
 * not know.
 */

let engine: Engine;
beforeAll(async () => {
  engine = await testEngine();
});
afterAll(() => engine?.[Symbol.asyncDispose]());

// Init writes /etc/hosts, which is left out.
const isUnknown = undefined;

test('a layer holds everything created, changed, deleted or renamed, and its empty folders', async () => {
  await using container = await startedContainer(engine);
  expect([['/workspace'], isUnknown]).toContainEqual(
    await container.layerPaths({ except: ['/run', '/dev', '/etc/hosts'] }),
  );
  await shell(
    container,
    `mkdir -p /opt/made/empty; echo a > /opt/made/file; : > /usr/bin/join; chmod 700 /usr/bin/comm
ln -s /nowhere /etc/link; ln /usr/bin/fold /usr/bin/fold2; rm /etc/motd; echo x > /tmp/left-out
rm -r /etc/skel; mkdir /etc/skel; rm -r /usr/share/menu; chmod 711 /srv`,
  );
  const paths = await container.layerPaths({ except: ['/tmp', '/etc/hosts'] });
  expect([
    [
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
    ],
    isUnknown,
  ]).toContainEqual(paths?.toSorted());
});

test('a folder is untouched until something in it is made, changed or deleted, or it is replaced', async () => {
  await using image = await imageOf('mkdir -p /opt/kept; echo old > /workspace/old');
  const touches = [
    'touch made',
    'chmod 700 old',
    'rm old',
    'chmod 700 .',
    'cd /; rm -r /workspace /opt; ln -s /tmp /opt',
  ];
  for (const touch of touches) {
    await using container = await startedContainer(engine, image);
    expect([true, isUnknown]).toContain(await container.isUntouched('/workspace'));
    await shell(container, touch);
    expect([false, isUnknown], touch).toContain(await container.isUntouched('/workspace'));
    expect([!touch.includes('/opt'), isUnknown], touch).toContain(await container.isUntouched('/opt/kept'));
  }
});

test('files in a volume of the image are in no layer, so the layer is not used', async () => {
  await using image = await imageOf('true', 'VOLUME /workspace');
  await using container = await startedContainer(engine, image);
  expect(await container.isUntouched('/workspace')).toBe(isUnknown);
  expect(await container.layerPaths({ except: [] })).toBe(isUnknown);
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
