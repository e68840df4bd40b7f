import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { buildImage } from '../../src/engine/docker/image-streams.ts';

const layer = `sha256:${'0a'.repeat(32)}`;

/** A build that the engine answers with this error. */
function building(message: string): Promise<void> {
  const answer = Readable.from([JSON.stringify({ errorDetail: { message } })]);
  return buildImage({ askForStream: async () => answer } as never, { dockerfile: 'FROM a', name: 'b:c' });
}

test.each([
  `unable to find image "${layer}"`,
  `failed to export image: failed to set parent ${layer}: unknown parent image ID ${layer}`,
  `No such image: ${layer}`,
])('a build that lost an image to a removal is not the fault of its Dockerfile: %s', async (message) => {
  await expect(building(message)).rejects.toMatchObject({ code: 'IMAGE_REMOVED', kind: 'infrastructure' });
});

test.each([
  `The command '/bin/sh -c docker run ${layer}; # No such image: ${layer}' returned a non-zero code: 1`,
  'pull access denied for nobody/has, repository does not exist',
])('every other failure is: %s', async (message) => {
  await expect(building(message)).rejects.toMatchObject({ code: 'IMAGE_NOT_BUILT', kind: 'input' });
});
