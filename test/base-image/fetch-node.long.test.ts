import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';
import { hostCertificates } from '../../src/api/host-certificates.ts';
import { fetchNode } from '../../src/base-image/build-from-debian.ts';
import { baseImageRecipe } from '../../src/base-image/recipe.ts';

const { node, npm } = baseImageRecipe;
const { arch, env } = process;
const caBundle = (await hostCertificates({}, env))?.path;

async function temporary() {
  const parent = await mkdtempDisposable(join(tmpdir(), 'offsite-node-'));
  const folder = join(parent.path, 'packages');
  return { folder, [Symbol.asyncDispose]: () => parent[Symbol.asyncDispose]() };
}

describe("the base image's Node and npm", () => {
  test("come from npm's registry in the recipe's versions", async () => {
    await using at = await temporary();
    await fetchNode({ ...at, recipe: baseImageRecipe, arch, env, caBundle });
    const program = join(at.folder, `node_modules/node-linux-${arch}/bin/node`);
    expect((await execa(program, ['--version'])).stdout).toBe(`v${node.version}`);
    const cli = join(at.folder, 'node_modules/npm/bin/npm-cli.js');
    expect((await execa(program, [cli, '--version'])).stdout).toBe(npm.version);
  });

  test('are refused if one does not have the known checksum', async () => {
    await using at = await temporary();
    const forged = { ...baseImageRecipe, npm: { ...npm, integrity: node.integrity[arch] ?? '' } };
    const fetching = fetchNode({ ...at, recipe: forged, arch, env, caBundle });
    await expect(fetching).rejects.toThrow('EINTEGRITY');
  });

  test('say what to do where no registry answers', async () => {
    await using at = await temporary();
    const lost = { ...env, npm_config_registry: 'http://127.0.0.1:9', npm_config_fetch_retries: '0' };
    const cold = { ...lost, npm_config_cache: join(at.folder, '../cache') };
    await expect(fetchNode({ ...at, recipe: baseImageRecipe, arch, env: cold })).rejects.toMatchObject({
      code: 'HOST_PROGRAM_FAILED',
      kind: 'infrastructure',
      message: expect.stringMatching(/^Could not fetch Node 24.*and npm 11.*ECONNREFUSED/s),
      hint: expect.stringContaining('npm_config_registry'),
    });
  });

  test('are the Node that a checkout installs, for each architecture', async () => {
    const lock = JSON.parse(await readFile(new URL('../../package-lock.json', import.meta.url), 'utf8'));
    for (const [arch, integrity] of Object.entries(node.integrity)) {
      const { version } = node;
      expect(lock.packages[`node_modules/node-linux-${arch}`]).toMatchObject({ version, integrity });
    }
  });
});
