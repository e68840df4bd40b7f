#!/usr/bin/env node
// Starts the installed command. Offsite runs under Node 24 or newer. This file runs under whatever Node the user has, so
// it is plain JavaScript. A checkout has a Node of its own, which is used if the user's is older. What only that needs
// is loaded only then: it takes as long as a short command.

import { existsSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

const neededNode = 24;
/** The bundled program. */
const program = new URL('../dist/', import.meta.url).href;

if (Number.parseInt(process.versions.node, 10) >= neededNode) {
  // Reading the program takes most of a short command's time, so later starts use a compiled one. We name the folder,
  // because other users may write to the one that Node would choose. Before the first import: without a source to read,
  // Node does not load what removes types from sources.
  module.enableCompileCache(
    join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'offsite', 'compiled'),
  );
  // A checkout runs its sources, whatever an earlier build left in `dist`; the package has only that.
  const sources = new URL('../src/cli/main.ts', import.meta.url);
  const isCheckout = existsSync(sources);
  if (!isCheckout) module.registerHooks({ resolve: resolvePart });
  await import(isCheckout ? sources : new URL('./src/cli/main.js', program));
} else {
  await startUnder(await ownNode());
}

/**
 * Says where a part of the bundled program is. There are up to 200 of them, and Node would look at the disk for each
 * one, which takes longer than to load it.
 */
function resolvePart(specifier, context, next) {
  if (!context.parentURL?.startsWith(program) || !/^\.\.?\/.*\.js$/.test(specifier))
    return next(specifier, context);
  return { url: new URL(specifier, context.parentURL).href, format: 'module', shortCircuit: true };
}

/** The Node of a checkout; undefined if there is none. */
async function ownNode() {
  const { dirname } = await import('node:path');
  const { resolve } = module.createRequire(import.meta.url);
  try {
    const path = join(
      dirname(resolve(`node-${process.platform}-${process.arch}/package.json`)),
      'bin',
      'node',
    );
    return existsSync(path) ? path : undefined;
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    return undefined;
  }
}

async function startUnder(node) {
  if (node === undefined) {
    stop(
      `Offsite runs under Node ${neededNode} or newer, and this is ${process.version}.\n` +
        `Install a newer one: https://nodejs.org, or \`nvm install ${neededNode}\`.`,
    );
    return;
  }
  const { spawn } = await import('node:child_process');
  const { constants } = await import('node:os');
  const { fileURLToPath } = await import('node:url');
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
