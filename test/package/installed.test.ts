import { cp, mkdir, mkdtempDisposable, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** In bytes: what a user's disk holds of Offsite, besides Node. */
const largestInstallation = 20 * 1024 * 1024;

/** Packs what npm would publish, without touching `dist/` of the checkout, and installs it in a folder. */
async function installPackage(folder: string): Promise<string> {
  const staged = join(folder, 'staged');
  await mkdir(staged);
  await execa(process.execPath, ['scripts/build.ts', join(staged, 'dist')], { cwd: root });
  const { files } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { files: string[] };
  for (const name of ['package.json', 'README.md', ...files.filter((each) => each !== 'dist')]) {
    await cp(join(root, name), join(staged, name), { recursive: true });
  }
  const { stdout } = await execa('npm', ['pack', '--ignore-scripts', '--json'], { cwd: staged });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  const project = join(folder, 'project');
  await mkdir(project);
  await writeFile(join(project, 'package.json'), '{ "private": true }');
  // Nothing of it comes from a registry, since this machine has Node 24 and the package has no other dependency.
  await execa('npm', ['install', '--offline', '--omit=optional', join(staged, filename)], { cwd: project });
  return project;
}

async function bytesIn(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

const suite = `
suite: { id: installed, prompt: Greet. }
variants: [{ name: writer, model: none, harness: command, profile: writer }]
cases:
  - id: greeting
    verify: grep hello greeting.txt
    validator: { file: check.ts, manifest: [it greets] }
`;

const validator = `
import assert from 'node:assert/strict';
import { validate } from 'offsite/validator';
validate('it greets', async ({ read }) => assert.equal(await read('greeting.txt'), 'hello\\n'));
`;

test('the packed package installs without other packages, and runs a suite with a validator', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-package-'));
  const project = await installPackage(folder.path);
  expect(await readdir(join(project, 'node_modules'))).toEqual(['.bin', '.package-lock.json', 'offsite']);
  expect(await bytesIn(join(project, 'node_modules'))).toBeLessThan(largestInstallation);

  const env = { HOME: folder.path, OFFSITE_HOME: join(folder.path, 'data') };
  const offsite = (...args: string[]) =>
    execa(join(project, 'node_modules/.bin/offsite'), args, { cwd: project, env, reject: false });
  expect(await offsite('--version')).toMatchObject({ exitCode: 0, stdout: '0.1.0' });
  const missing = await offsite('fleet', 'status');
  expect(missing).toMatchObject({ exitCode: 2 });
  expect(missing.stderr).toContain('npm install @temporalio/');

  await writeFile(join(project, 'suite.yaml'), suite);
  await writeFile(
    join(project, 'offsite.yaml'),
    'profiles: { writer: { run: "echo hello > greeting.txt" } }\n',
  );
  await writeFile(join(project, 'check.ts'), validator);
  const { stdout } = await offsite('run', 'suite.yaml', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ passed: 1, failed: 0, void: 0 });
}, 300_000);
