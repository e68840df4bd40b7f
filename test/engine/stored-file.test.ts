import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { storedFile } from '../../src/engine/archive/stored-file.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { testEngine } from './engine-fixture.ts';

let engine: Engine;
beforeAll(async () => {
  engine = await testEngine();
});
afterAll(() => engine?.[Symbol.asyncDispose]());

test('a file in a volume is written once, and its helper is gone', async () => {
  const { port, instance } = engine;
  const imageId = (await engine.findImage('offsite/base'))?.id ?? '';
  const helper = { imageId, labels: { 'offsite.instance': instance } };
  const volume = `offsite-test-${randomUUID()}`;
  await using stack = new AsyncDisposableStack();
  stack.defer(() => port.remove('volume', volume));
  const store = (content: string) =>
    storedFile(port, volume, { content: Buffer.from(content), ending: '.txt', mode: 0o644 }, helper);
  const first = await store('one');
  expect(first).toMatch(/^[\da-f]{64}-[\da-f]{16}\.txt$/);
  expect(await store('one')).toBe(first);
  expect(await store('two')).not.toBe(first);
  expect(await port.list('container', [`offsite.instance=${instance}`])).toEqual([]);
}, 60_000);
