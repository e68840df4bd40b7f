#!/usr/bin/env node
// Starts the installed command. Offsite runs under Node 24, which the package brings with it; this file runs under whatever
// Node the user has, and changes over when that is an older one. Hence plain JavaScript.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const neededNode = 24;

if (Number.parseInt(process.versions.node, 10) >= neededNode) {
  // A checkout that was not built runs from its sources.
  const built = new URL('../dist/src/cli/main.js', import.meta.url);
  await import(existsSync(built) ? built : new URL('../src/cli/main.ts', import.meta.url));
} else {
  startUnder(ownNode());
}

/** The binary that was installed with us; undefined when npm left it out. */
function ownNode() {
  const { resolve } = createRequire(import.meta.url);
  for (const name of ['node', `node-${process.platform}-${process.arch}`]) {
    try {
      const path = join(dirname(resolve(`${name}/package.json`)), 'bin', 'node');
      if (existsSync(path)) return path;
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  return undefined;
}

function startUnder(node) {
  if (node === undefined) {
    stop(
      `Offsite runs under Node ${neededNode} or newer; this is ${process.version}, and the one that npm installs with it is missing,\n` +
        'because npm left out optional packages or install scripts, or has none for this platform. Install a newer Node.',
    );
    return;
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit' });
  // A terminal sends Ctrl-C to the child as well, and twice would mean "at once".
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => stop(`Could not start ${node}: ${error.message}`));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}

function stop(message) {
  console.error(message);
  process.exitCode = 2;
}
