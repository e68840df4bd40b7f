import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { storedFiles } from '../../src/engine/archive/stored-file.ts';
import type { ContainerRequest } from '../../src/engine/port/containers.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();

test('a file in a volume is written once, and its helper is gone', async () => {
  const { port, instance } = engine;
  const imageId = (await engine.findImage('offsite/base'))?.id ?? '';
  const helper = { imageId, labels: { 'offsite.instance': instance } };
  const volume = `offsite-test-${randomUUID()}`;
  await using stack = new AsyncDisposableStack();
  stack.defer(() => port.remove('volume', volume));
  const store = async (content: string) => {
    const file = { content: Buffer.from(content), ending: '.txt', mode: 0o644 };
    return (await storedFiles(port, volume, [file], helper))[0]?.name;
  };
  const first = await store('one');
  expect(first).toMatch(/^[\da-f]{64}-[\da-f]{16}\.txt$/);
  expect(await store('one')).toBe(first);
  expect(await store('two')).not.toBe(first);
  expect(await port.list('container', [`offsite.instance=${instance}`])).toEqual([]);
});

test('its helper takes the image and labels of a container, and not its filter', async () => {
  const { port, instance } = engine;
  const imageId = (await engine.findImage('offsite/base'))?.id ?? '';
  const like = {
    imageId,
    labels: { 'offsite.instance': instance },
    filter: '{}',
    name: 'taken',
    stdin: true,
  };
  const volume = `offsite-test-${randomUUID()}`;
  await using stack = new AsyncDisposableStack();
  stack.defer(() => port.remove('volume', volume));
  const asked: ContainerRequest[] = [];
  const create: typeof port.containers.create = (request, signal) => {
    asked.push(request);
    return port.containers.create(request, signal);
  };
  const watched = { ...port, containers: { ...port.containers, create } };
  const file = { content: Buffer.from('one'), ending: '.txt', mode: 0o644 };
  await storedFiles(watched, volume, [file], like);
  expect(asked).toHaveLength(1);
  expect(asked[0]).toMatchObject({ imageId, labels: like.labels, stdin: false });
  expect(asked[0]).not.toHaveProperty('filter');
  expect(asked[0]).not.toHaveProperty('name');
});
