import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { importArchive } from '../../src/base-image/import-archive.ts';
import {
  type BaseImageRecipe,
  baseImageName,
  baseImageRecipe,
  recipeLabel,
} from '../../src/base-image/recipe.ts';
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

describe('importing what a program prints as an image', () => {
  const recipeOf = (repository: string): BaseImageRecipe => ({ ...baseImageRecipe, repository });
  const { env } = process;

  async function folderWithMarker() {
    const folder = await mkdtempDisposable(join(tmpdir(), 'offsite-import-'));
    await writeFile(join(folder.path, 'marker'), 'hello');
    return folder;
  }

  test('carries the label of its recipe', async () => {
    await using folder = await folderWithMarker();
    const recipe = recipeOf('offsite-test/import');
    const image = docker.getImage(baseImageName(recipe));
    const command = ['tar', '--create', '--directory', folder.path, '.'];
    await importArchive({ engine: engine.port, env, command, recipe });
    try {
      expect((await image.inspect()).Config.Labels).toHaveProperty([recipeLabel]);
    } finally {
      await image.remove();
    }
  });

  test('leaves no image when the program fails at its end, and says what it said', async () => {
    await using folder = await folderWithMarker();
    const recipe = recipeOf('offsite-test/broken-import');
    const script = 'tar --create --directory "$0" .; echo no more room >&2; exit 2';
    const importing = importArchive({
      engine: engine.port,
      env,
      command: ['sh', '-c', script, folder.path],
      recipe,
    });
    await expect(importing).rejects.toThrow(/Could not import.*no more room/s);
    const image = docker.getImage(baseImageName(recipe));
    await expect(image.inspect()).rejects.toMatchObject({ statusCode: 404 });
  });
});
