import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { isInstalled, markInstalled } from './stamp.mjs';

/**
 * Installs what package-lock.json lists, unless node_modules already matches it.
 * @param {string} root
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ok: true} | {ok: false, message: string, exitCode: number}>}
 */
export async function installDependencies(root, env) {
  if (await isInstalled(root)) return { ok: true };
  const began = Date.now();
  const seconds = () => Math.round((Date.now() - began) / 1000);
  console.log('Installing the dependencies of package-lock.json (npm ci) ...');
  const ticking = setInterval(() => console.log(`npm ci: ${seconds()} s so far`), 10_000);
  const { exitCode, output } = await runNpm(root, env).finally(() => clearInterval(ticking));
  if (exitCode !== 0) {
    console.error(output.trimEnd());
    return { ok: false, message: `npm ci failed after ${seconds()} s; its output is above.`, exitCode };
  }
  await markInstalled(root);
  console.log(`npm ci: done in ${seconds()} s`);
  return { ok: true };
}

/**
 * Quiet unless it fails. `--loglevel=error` hides the EBADENGINE warnings: npm checks the packages against
 * the Node that runs it, but they run under the Node that it installs.
 */
function runNpm(root, env) {
  const path = outsideOf(root, env.PATH);
  const [command, ...words] = npmCommand(env, path);
  const args = [...words, 'ci', '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'];
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...env, PATH: path },
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: process.platform === 'win32' && command === 'npm', // on Windows, npm is a .cmd file
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', (error) =>
      resolve({ exitCode: 2, output: `npm could not be started: ${error.message}` }),
    );
    child.on('close', (code) => resolve({ exitCode: code ?? 1, output }));
  });
}

/**
 * The npm that runs this script, under a Node that is not one of the dependencies, because npm ci deletes
 * them first.
 * @returns {[string, ...string[]]}
 */
function npmCommand(env, path) {
  const running = env.npm_execpath;
  if (!running?.endsWith('npm-cli.js')) return ['npm'];
  const node = path
    .split(delimiter)
    .map((folder) => join(folder, process.platform === 'win32' ? 'node.exe' : 'node'));
  return [node.find(isExecutable) ?? process.execPath, running];
}

function outsideOf(root, path = '') {
  const folders = path.split(delimiter);
  return folders
    .filter((folder) => folder !== '' && !folder.startsWith(join(root, 'node_modules')))
    .join(delimiter);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EACCES'].includes(error.code)) return false;
    throw error;
  }
}
