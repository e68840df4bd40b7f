#!/usr/bin/env node
// Runs one of the TypeScript scripts with everything it needs: the dependencies of package-lock.json, which
// it installs if they are missing, and Node 24, which is one of them. It runs under the user's own Node,
// before anything is installed, so it is plain JavaScript without imports of packages.
//
//   node scripts/with-dependencies.mjs scripts/test.ts [arguments ...]

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { installDependencies } from './dependencies/install.mjs';
import { projectNode } from './dependencies/project-node.mjs';

const oldestNode = 20;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [script, ...args] = process.argv.slice(2);

if (Number.parseInt(process.versions.node, 10) < oldestNode) {
  stop(`Offsite's scripts need Node ${oldestNode} or newer to start, and this is ${process.version}.`);
} else if (script === undefined) {
  stop('Which script? node scripts/with-dependencies.mjs <script.ts> [arguments ...]');
} else {
  await main();
}

async function main() {
  const installed = await installDependencies(root, process.env);
  if (!installed.ok) return stop(installed.message, installed.exitCode);
  const node = await projectNode(root);
  if (!node.ok) return stop(node.message);
  const bin = join(root, 'node_modules', '.bin');
  const env = { ...process.env, PATH: [bin, process.env.PATH].join(delimiter) };
  passOn(spawn(node.path, [join(root, script), ...args], { cwd: root, env, stdio: 'inherit' }));
}

/** @param {import('node:child_process').ChildProcess} child */
function passOn(child) {
  // A terminal sends Ctrl-C to the child too, and a second one would mean "at once". Either way, this process
  // waits for the child to end.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => stop(`Could not start ${child.spawnfile}: ${error.message}`));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}

function stop(message, exitCode = 2) {
  console.error(message);
  process.exitCode = exitCode;
}
