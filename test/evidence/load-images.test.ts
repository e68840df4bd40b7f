import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectEngine } from '../../src/engine/connect.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { loadImages } from '../../src/evidence/load-images.ts';
import { type Entry, tarOf } from './bundle-file.ts';

const { signal } = new AbortController();
let engine: Engine;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-images-'));
  engine = await connectEngine({ instance: `test-images-${process.pid}` });
});
afterAll(async () => {
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const text = (name: string, content: string): Entry => ({ name, content: Buffer.from(content) });
const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

/** An archive of one small image, as an engine saves it, and the image's id. */
function archived(
  change: (parts: { layer: Buffer; list: Record<string, unknown>[] }) => Entry[] | undefined = () =>
    undefined,
  labels = {},
) {
  const layer = tarOf([text('hello.txt', `hello ${Math.random()}`)]);
  const config = Buffer.from(
    JSON.stringify({
      architecture: 'amd64',
      os: 'linux',
      config: { Labels: labels },
      history: [{ created_by: 'test' }],
      rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(layer)}`] },
    }),
  );
  const id = sha256(config);
  const list: Record<string, unknown>[] = [
    { Config: `${id}.json`, RepoTags: null, Layers: ['one/layer.tar'] },
  ];
  const more = change({ layer, list }) ?? [];
  const entries = [
    { name: `${id}.json`, content: config },
    { name: 'one/layer.tar', content: layer },
  ];
  const own = more.some(({ name }) => name === 'manifest.json')
    ? []
    : [text('manifest.json', JSON.stringify(list))];
  const changed = entries.filter(({ name }) => !more.some((one) => one.name === name));
  const file = join(folder, `${id}.tar`);
  writeFileSync(file, tarOf([...changed, ...own, ...more]));
  return { imageIds: [`sha256:${id}`], file };
}

test('the images of evidence are in the engine under their ids, and gone afterwards', async () => {
  const archive = archived();
  {
    await using loaded = await loadImages([archive], engine, signal);
    expect(loaded.problems).toEqual([]);
    expect([...loaded.ids]).toEqual(archive.imageIds);
    expect(await engine.findImage(archive.imageIds[0] ?? '', signal)).toBeDefined();
  }
  expect(await engine.findImage(archive.imageIds[0] ?? '', signal)).toBeUndefined();
});

test('an image that the engine has already stays', async () => {
  const base = await engine.findImage('offsite/base', signal);
  const imageIds = [base?.id ?? ''];
  {
    await using loaded = await loadImages([{ imageIds, file: '/nowhere' }], engine, signal);
    expect([...loaded.ids]).toEqual(imageIds);
  }
  expect(await engine.findImage('offsite/base', signal)).toEqual(base);
});

const names = ['offsite/base:latest'];
const link = (name: string, linkName: string): Entry => ({
  ...text(name, ''),
  header: { flag: '2', linkName: Buffer.from(linkName) },
});

test.each<[what: string, Parameters<typeof archived>[0], why: RegExp]>([
  ['a name', ({ list }) => void Object.assign(list[0] ?? {}, { RepoTags: names }), /they have names/],
  ['a list of names', () => [text('repositories', '{"offsite/base":{"latest":"one"}}')], /they have names/],
  [
    'a name in the form of OCI',
    () => [
      text(
        'index.json',
        JSON.stringify({ manifests: [{ annotations: { 'io.containerd.image.name': names[0] } }] }),
      ),
    ],
    /they have names/,
  ],
  [
    'a second list, by another path',
    () => [text('one/../manifest.json', JSON.stringify([{ RepoTags: names }]))],
    /they have names/,
  ],
  ['a list that is a link', () => [text('other', '[]'), link('manifest.json', 'other')], /no images as/],
  ['a folder that is a link', () => [link('two', '.')], /no images as/],
  [
    'a layer that expands',
    () => [{ name: 'one/layer.tar', content: gzipSync(Buffer.alloc(1_000_000)) }],
    /compressed/,
  ],
  [
    'a file with holes',
    () => {
      const sparse = { ...text('big', ''), header: { flag: 'S' } };
      return [{ name: 'one/layer.tar', content: tarOf([text('one', '1'), sparse]) }];
    },
    /a file with holes/,
  ],
  ['no list', () => [text('manifest.json', '{')], /not loaded/],
  ['no layer', () => [{ name: 'one/layer.tar', content: Buffer.alloc(2_000, 7) }], /not loaded/],
])('an archive with %s is not given to the engine', async (_, change, why) => {
  const before = await engine.findImage('offsite/base', signal);
  const archive = archived(change);
  await using loaded = await loadImages([archive], engine, signal);
  expect(loaded.problems.join()).toMatch(why);
  expect([...loaded.ids]).toEqual([]);
  expect(await engine.findImage(archive.imageIds[0] ?? '', signal)).toBeUndefined();
  expect((await engine.findImage('offsite/base', signal))?.id).toBe(before?.id);
});

test('an archive that does not hold the image that it is said to hold gives none', async () => {
  const { imageIds, file } = archived();
  const other = imageIds[0] ?? '';
  {
    const said = [`sha256:${'a'.repeat(64)}`, 'offsite/base:latest'];
    await using loaded = await loadImages([{ imageIds: said, file }], engine, signal);
    expect([...loaded.ids]).toEqual([]);
    expect(loaded.problems).toHaveLength(2);
    expect(await engine.findImage(other, signal)).toBeDefined();
  }
  expect(await engine.findImage(other, signal)).toBeUndefined();
});

test('an image that would take a volume of this machine with it is not used', async () => {
  const archive = archived(undefined, { 'offsite.volume': 'offsite-other' });
  {
    await using loaded = await loadImages([archive], engine, signal);
    expect([...loaded.ids]).toEqual([]);
  }
  expect(await engine.findImage(archive.imageIds[0] ?? '', signal)).toBeUndefined();
});
