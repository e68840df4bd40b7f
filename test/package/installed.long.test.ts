import { cp, mkdir, mkdtempDisposable, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pythonVersions } from '../../runners/versions.ts';
import { installPacked, packPackage } from './install-package.ts';

const root = join(import.meta.dirname, '../..');

/** In bytes: what a user's disk holds of Offsite, besides Node. */
const largestInstallation = 20 * 1024 * 1024;

const engine = { ...(process.env.DOCKER_HOST && { DOCKER_HOST: process.env.DOCKER_HOST }) };

let folder: Awaited<ReturnType<typeof mkdtempDisposable>>;
let packed: string;

beforeAll(async () => {
  folder = await mkdtempDisposable(join(tmpdir(), 'offsite-package-'));
  packed = await packPackage(folder.path);
});
afterAll(() => folder?.remove());

/** Installs the package in a folder of its own. */
async function install(name: string, ...options: string[]): Promise<string> {
  const place = join(folder.path, name);
  await installPacked(packed, place, ...options);
  return place;
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
  const project = await install('project');
  expect(await readdir(join(project, 'node_modules'))).toEqual(['.bin', '.package-lock.json', 'offsite']);
  expect(await bytesIn(join(project, 'node_modules'))).toBeLessThan(largestInstallation);

  // Where the package is, there is no checkout.
  const readme = await readFile(join(project, 'node_modules/offsite/README.md'), 'utf8');
  expect(readme).toContain('npx offsite quickstart');
  expect(readme).not.toMatch(/checkout|npm (run|test)/);

  // Runners read these when they install a CLI.
  const runnersFolder = join(project, 'node_modules/offsite/dist/runners');
  for (const { lock } of Object.values(pythonVersions)) {
    const path = relative('runners', relative('', fileURLToPath(lock)));
    expect(await readFile(join(runnersFolder, path))).toEqual(await readFile(lock));
  }

  const env = { ...engine, HOME: folder.path, OFFSITE_HOME: join(folder.path, 'data') };
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

  // Each of these loads packages that nothing else needs.
  const forms = ['--csv', 'a.csv', '--parquet', 'a.parquet', '--inspect', 'logs', '--evidence', 'a.evidence'];
  expect(await offsite('export', ...forms)).toMatchObject({ exitCode: 0 });
  expect(await offsite('import-log', 'logs')).toMatchObject({ exitCode: 0 });
  expect(await offsite('audit', 'a.evidence')).toMatchObject({ exitCode: 0 });
});

test('a program uses the packed package as a library, with its types', async () => {
  const project = await install('library');
  await cp(join(project, 'node_modules/offsite/examples/library'), project, { recursive: true });
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  const env = { ...engine, HOME: folder.path, OFFSITE_HOME: join(folder.path, 'library-data') };
  const { stdout, stderr } = await execa(process.execPath, ['run.ts'], { cwd: project, env });
  expect(stderr).toBe('');
  const lines = stdout.split('\n');
  expect(lines.slice(0, 8).toSorted()).toEqual(
    [0, 1]
      .flatMap(() => [
        'one-word · careful: passed',
        'one-word · hasty: passed',
        'two-words · careful: passed',
        'two-words · hasty: failed',
      ])
      .toSorted(),
  );
  expect(lines.slice(8)).toEqual([
    'careful passed 4 of 4',
    'hasty passed 2 of 4',
    expect.stringMatching(/^batch_\S+:two-words\/hasty#0 wrote: hello$/),
  ]);

  // All types are in the package: nothing is skipped, and no other package is installed.
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2024',
    lib: ['es2024'],
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
  };
  await writeFile(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['run.ts', 'mistake.ts'] }),
  );
  await writeFile(
    join(project, 'mistake.ts'),
    "import { readBatch } from 'offsite';\n(await readBatch('last')).trials[0]?.verdit;\n",
  );
  const checked = await execa(join(root, 'node_modules/.bin/tsc'), ['-p', '.'], {
    cwd: project,
    reject: false,
  });
  expect(checked.stdout.split('\n')).toEqual([
    expect.stringMatching(/^mistake\.ts.*'verdit' does not exist/),
  ]);
});

test('a global install runs the quickstart from an empty folder, and leaves the folder empty', async () => {
  const prefix = await install('prefix', '--global', '--prefix', join(folder.path, 'prefix'));
  expect(await bytesIn(join(prefix, 'lib'))).toBeLessThan(largestInstallation);
  const cwd = join(folder.path, 'empty');
  await mkdir(cwd);
  const env = { ...engine, HOME: folder.path, OFFSITE_HOME: join(folder.path, 'quickstart') };
  const offsite = (args: string[], more: NodeJS.ProcessEnv = {}) =>
    execa(join(prefix, 'bin/offsite'), args, { cwd, env: { ...env, ...more }, reject: false });

  const { exitCode, stdout, stderr } = await offsite(['quickstart', '--concurrency', '2']);
  expect(stdout).toMatch(/^all +10 +6 +0 +63 %/m);
  expect(stderr).toContain(`The suite that ran is ${join(prefix, 'lib/node_modules/offsite/examples')}`);
  expect(exitCode).toBe(0);
  expect(await readdir(cwd)).toEqual([]);

  const older = "data:text/javascript,Object.defineProperty(process.versions,'node',{value:'22.9.0'})";
  const refused = await offsite(['--version'], { NODE_OPTIONS: `--import=${older}` });
  expect(refused).toMatchObject({ exitCode: 2, stdout: '' });
  expect(refused.stderr).toContain('Offsite runs under Node 24 or newer');
}, 600_000);
