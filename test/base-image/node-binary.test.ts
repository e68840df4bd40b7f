import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { caBundleOf } from '../../src/base-image/host-certificates.ts';
import { fetchedNode, fetchPackage, nodeBinary } from '../../src/base-image/node-binary.ts';
import { runningBuild, unfitFor } from '../../src/base-image/running-node.ts';

const image = { major: 24, glibc: '2.36' };
const official = { version: '24.21.0', arch: 'x64', glibc: '2.28', shared: [] };

describe('the Node of this process', () => {
  test('is described as it is', () => {
    expect(runningBuild()).toMatchObject({ version: process.versions.node, arch: process.arch });
  });

  test.each([
    ['an official build', {}, undefined],
    ['another version', { version: '26.1.0' }, 'is version 26.1.0'],
    ['a build for Alpine', { glibc: undefined }, 'needs a C library other than glibc'],
    ['a build for a newer distribution', { glibc: '2.41' }, 'needs glibc 2.41'],
    ['a build of a distribution', { shared: ['openssl', 'zlib'] }, "needs its distribution's openssl, zlib"],
  ])('as %s: does it run in the image?', (_what, change, reason) => {
    expect(unfitFor({ ...official, ...change }, image)).toBe(reason);
  });
});

describe("the base image's Node", () => {
  async function source() {
    const folder = await mkdtempDisposable(join(tmpdir(), 'offsite-node-'));
    const lines: string[] = [];
    const bundle = await caBundleOf({ env: process.env });
    const env = { ...process.env, ...(bundle && { npm_config_cafile: bundle.path }) };
    const asked = { ...image, folder: folder.path, npm: 'npm', env, log: (line: string) => lines.push(line) };
    return { asked, lines, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
  }

  test('is that of this process if it runs in the image, without anything fetched', async () => {
    await using it = await source();
    expect(await nodeBinary({ ...it.asked, installed: [], running: official })).toBe(process.execPath);
    expect(it.lines).toEqual([]);
  });

  test("comes from npm's registry otherwise, and Offsite says so", async () => {
    await using it = await source();
    const running = { ...official, arch: process.arch, version: '26.1.0' };
    const path = await nodeBinary({ ...it.asked, installed: [], running });
    expect((await execa(path, ['--version'])).stdout).toBe(`v${fetchedNode.version}`);
    expect(it.lines).toEqual([expect.stringMatching(/is version 26.*fetching node-linux-\w+ 24.*registry/)]);
  }, 300_000);

  test('is an error that says what to do for a processor that npm has no Node for', async () => {
    await using it = await source();
    const running = { ...official, arch: 'riscv64', version: '26.1.0' };
    const finding = nodeBinary({ ...it.asked, installed: [], running });
    await expect(finding).rejects.toMatchObject({ code: 'BASE_IMAGE_NO_NODE', message: /is version 26/ });
  });

  test('is refused if it is not the one with the known checksum', async () => {
    await using it = await source();
    const forged = { name: 'ms', version: '2.1.1', integrity: fetchedNode.integrity.x64 ?? '' };
    await expect(fetchPackage(forged, it.asked)).rejects.toThrow('EINTEGRITY');
  }, 120_000);

  test('is the one that a checkout installs', async () => {
    const lock = JSON.parse(await readFile(new URL('../../package-lock.json', import.meta.url), 'utf8'));
    for (const [arch, integrity] of Object.entries(fetchedNode.integrity)) {
      const { version } = fetchedNode;
      expect(lock.packages[`node_modules/node-linux-${arch}`]).toMatchObject({ version, integrity });
    }
  });
});
