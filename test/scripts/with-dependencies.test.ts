import { cp, mkdir, mkdtempDisposable, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, test } from 'vitest';

const repository = join(import.meta.dirname, '../..');

/**
 * A program in npm's place: it says that it ran, and installs a Node as the real one would, unless told to
 * fail.
 */
const npmStandIn = `
const { appendFileSync, mkdirSync, rmSync, symlinkSync } = require('node:fs');
appendFileSync('npm-ran', process.argv.slice(2).join(' ') + '\\n');
if (process.env.NPM_FAILS) { console.error('npm error code ENOTFOUND'); process.exit(43); }
rmSync('node_modules', { recursive: true, force: true });
mkdirSync('node_modules/.bin', { recursive: true });
if (!process.env.NPM_SCRIPTS_BLOCKED) symlinkSync(process.env.REAL_NODE, 'node_modules/.bin/node');
console.log('npm warn EBADENGINE noise');
`;

const script = `
const said: string = [process.version.split('.')[0], ...process.argv.slice(2)].join(' ');
if (process.argv[2] === 'wait') { process.on('SIGTERM', () => process.exit(9)); setInterval(() => {}, 1000); }
else process.exitCode = 7;
console.log(said, process.env.PATH?.split(':')[0]);
`;

async function project() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'offsite-dependencies-'));
  const at = (path: string) => join(folder.path, path);
  await mkdir(at('scripts'));
  await cp(join(repository, 'scripts/with-dependencies.mjs'), at('scripts/with-dependencies.mjs'));
  await cp(join(repository, 'scripts/dependencies'), at('scripts/dependencies'), { recursive: true });
  await writeFile(at('scripts/some.ts'), script);
  await writeFile(at('package-lock.json'), '{"packages":{"":{},"node_modules/a":{"version":"1.0.0"}}}');
  await writeFile(at('npm-cli.js'), npmStandIn);
  const env = { ...process.env, npm_execpath: at('npm-cli.js'), REAL_NODE: process.execPath };
  const run = (args: string[] = [], more: NodeJS.ProcessEnv = {}) =>
    execa(process.execPath, [at('scripts/with-dependencies.mjs'), 'scripts/some.ts', ...args], {
      env: { ...env, ...more },
      reject: false,
    });
  const timesInstalled = async () =>
    (await readFile(at('npm-ran'), 'utf8').catch(() => '')).split('\n').length - 1;
  return { at, run, timesInstalled, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

describe('a script that is run with its dependencies', () => {
  test('gets them installed the first time and only then, quietly, and runs under the installed Node', async () => {
    await using it = await project();
    const first = await it.run(['a', '--b']);
    expect(first.stdout).toContain('npm ci: done in');
    expect(first.stdout + first.stderr).not.toContain('EBADENGINE');
    expect(first.stdout.split('\n').at(-1)).toBe(`v24 a --b ${it.at('node_modules/.bin')}`);
    expect(first.exitCode).toBe(7);

    const second = await it.run();
    expect(second.stdout).toBe(`v24 ${it.at('node_modules/.bin')}`);
    expect(await it.timesInstalled()).toBe(1);
  });

  test('gets them installed again when the lock file has changed', async () => {
    await using it = await project();
    await it.run();
    await writeFile(it.at('package-lock.json'), '{"packages":{"":{},"node_modules/a":{"version":"2.0.0"}}}');
    await it.run();
    expect(await it.timesInstalled()).toBe(2);
  });

  test('gets them installed again when an install was cut short', async () => {
    await using it = await project();
    await it.run();
    await rm(it.at('node_modules/.offsite-lock-sha256'));
    await it.run();
    expect(await it.timesInstalled()).toBe(2);
  });

  test("does without an install when the user's own npm has done it", async () => {
    await using it = await project();
    await mkdir(it.at('node_modules'));
    await writeFile(
      it.at('node_modules/.package-lock.json'),
      '{"packages":{"node_modules/a":{"version":"1.0.0"}}}',
    );
    expect((await it.run()).exitCode).toBe(7);
    expect(await it.timesInstalled()).toBe(0);
  });

  test('does not run when the install fails, shows what npm said and ends with its exit code', async () => {
    await using it = await project();
    const failed = await it.run([], { NPM_FAILS: '1' });
    expect(failed.stderr).toContain('npm error code ENOTFOUND');
    expect(failed.stderr).toContain('npm ci failed after');
    expect(failed.exitCode).toBe(43);
    expect((await it.run()).exitCode, 'and the next run tries again').toBe(7);
  });

  test("runs under the user's own Node 24 when install scripts are blocked", async () => {
    await using it = await project();
    expect((await it.run([], { NPM_SCRIPTS_BLOCKED: '1' })).exitCode).toBe(7);
  });

  test('is told when the user stops it, and its own exit code counts', async () => {
    await using it = await project();
    const running = it.run(['wait']);
    for await (const line of running) if (line.startsWith('v24 wait')) running.kill('SIGTERM');
    expect((await running).exitCode).toBe(9);
  });
});
