import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Engine } from '../../../src/engine/engine.ts';
import { dockerOf } from '../docker-of.ts';
import { shell, startedContainer, testEngine } from '../engine-fixture.ts';

const name = 'offsite-test/tiny:latest';

/** What our init and a test's commands need, and the libraries of that. */
const collect = `
programs="/bin/sh /bin/bash /bin/cat /bin/sleep /bin/grep /bin/readlink /usr/bin/env"
mkdir -p /tmp/root/workspace
cp -L --parents $programs $(ldd $programs | grep -o '/[^ :]*' | sort -u) /tmp/root`;

/**
 * Creates an image of a few MB from some programs of the base image: importing the whole one would take a
 * test's engine half a minute. Resolves with its id.
 */
export async function tinyImage(engine: Engine): Promise<string> {
  const image = await importRoot(engine, await tinyRoot());
  const found = await engine.findImage(image);
  if (found === undefined) throw new Error('the engine did not import the image');
  return found.id;
}

async function tinyRoot(): Promise<Buffer> {
  await using shared = await testEngine();
  await using container = await startedContainer(shared);
  const collected = await shell(container, collect);
  if (collected.exitCode !== 0) throw new Error(collected.stderr.text);
  const archive = await dockerOf(shared).getContainer(container.id).getArchive({ path: '/tmp/root/.' });
  // The container goes when this function ends.
  return await buffer(archive as Readable);
}

async function importRoot(engine: Engine, root: Buffer): Promise<string> {
  const [repo, tag] = name.split(':');
  const answer = await dockerOf(engine).importImage(Readable.from([root]), { repo, tag });
  await buffer(answer as Readable);
  return name;
}
