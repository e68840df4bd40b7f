import { readdir } from 'node:fs/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { hostCertificates } from '../../src/api/host-certificates.ts';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { buildFromDebian } from '../../src/base-image/build-from-debian.ts';
import { baseImageName, baseImageRecipe, recipeHash, recipeLabel } from '../../src/base-image/recipe.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { testEngine } from '../engine/engine-fixture.ts';

const engine = await testEngine();
const docker = dockerOf(engine);
afterAll(() => engine[Symbol.asyncDispose]());

/**
 * What a command prints in a new container without a network; with a terminal, as its log then has no frames.
 */
async function printed(image: string, command: string[], user = ''): Promise<string> {
  const container = await docker.createContainer({
    Image: image,
    Cmd: command,
    User: user,
    Tty: true,
    HostConfig: { NetworkMode: 'none', LogConfig: { Type: 'json-file', Config: {} } },
  });
  try {
    await container.start();
    await container.wait();
    const log = await container.logs({ stdout: true, stderr: true });
    return log.toString('utf8').replaceAll('\r\n', '\n');
  } finally {
    await container.remove({ force: true });
  }
}

describe('offsite/base', () => {
  test('has all that a trial needs, without a network', async () => {
    const programs = ['node', 'npm', 'npx', 'git', 'python3', 'pip', 'uv', 'pytest', 'curl', 'bash'];
    const each = `for program in ${programs.join(' ')}; do echo "$program: $($program --version 2>&1 | head -1)"; done`;
    const text = await printed('offsite/base', ['bash', '-c', each]);
    expect(text).toMatch(/^node: v24\./m);
    expect(text).toMatch(/^npm: 11\./m);
    expect(text).toMatch(/^npx: 11\./m);
    expect(text).toMatch(/^git: git version/m);
    expect(text).toMatch(/^python3: Python 3\.11/m);
    expect(text).toMatch(/^pip: pip \d/m);
    expect(text).toMatch(/^uv: uv 0/m);
    expect(text).toMatch(/^pytest: pytest \d/m);
    expect(text).toMatch(/^curl: curl /m);
    expect(text).toMatch(/^bash: GNU bash/m);
  });

  test('carries the hash of its recipe', async () => {
    const { Config } = await docker.getImage('offsite/base').inspect();
    expect(Config.Labels).toMatchObject({ [recipeLabel]: recipeHash(baseImageRecipe) });
  });

  test.each(['pip', 'uv pip install --system'])('lets %s install into the system', async (words) => {
    const install = words === 'pip' ? 'pip install --no-build-isolation' : `${words} --no-build-isolation`;
    const script = `mkdir /tmp/own && cd /tmp/own && echo 'WORDS = "as installed"' > own.py &&
      echo 'from setuptools import setup; setup(name="own", py_modules=["own"])' > setup.py &&
      ${install} --quiet --no-deps --no-index . && cd / && python3 -c 'import own; print(own.WORDS)'`;
    expect(await printed('offsite/base', ['bash', '-c', script])).toMatch(/as installed\n$/);
  });

  test('can be used by somebody who is not root', async () => {
    expect(
      await printed('offsite/base', ['node', '-e', 'console.log("uid " + process.getuid())'], '1000'),
    ).toBe('uid 1000\n');
  });
});

describe('a build from Debian packages', () => {
  test('that fails says why and what to do, and leaves no image and no folder', async () => {
    const recipe = { ...baseImageRecipe, repository: 'offsite-test/unreachable' };
    const folders = async () =>
      (await readdir('/var/tmp')).filter((name) => name.startsWith('offsite-base-'));
    const before = await folders();
    const building = buildFromDebian({
      engine: engine.port,
      recipe,
      log: () => undefined,
      during: (_title, work) => work(),
      env: { ...process.env, OFFSITE_DEBIAN_MIRROR: 'http://127.0.0.1:9/debian' },
      caBundle: (await hostCertificates({}, process.env))?.path,
      registryError: new OffsiteError('no registry', { code: 'IMAGE_FAILED', kind: 'infrastructure' }),
    });
    await expect(building).rejects.toMatchObject({
      code: 'HOST_PROGRAM_FAILED',
      message: expect.stringMatching(
        /^Could not build the base image from Debian packages: mmdebstrap .*127\.0\.0\.1/s,
      ),
      hint: 'Set OFFSITE_DEBIAN_MIRROR to use another mirror.',
    });
    const image = docker.getImage(baseImageName(recipe));
    await expect(image.inspect()).rejects.toMatchObject({ statusCode: 404 });
    const made = (await readdir('/var/tmp')).filter((name) => !before.includes(name));
    expect(made.filter((name) => name.startsWith('offsite-base-image-'))).toEqual([]);
  });
});
