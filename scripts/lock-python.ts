// Locks the packages of the CLIs from PyPI anew, or of those that are named as arguments:
// `node scripts/lock-python.ts aider`. Needs Python with pip, and PyPI.

import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pythonVersions } from '../runners/versions.ts';
import { OffsiteError } from '../src/base/offsite-error.ts';
import type { PythonCli } from '../src/harness/python-cli.ts';
import { lockText } from './python-locks/lock-text.ts';
import { resolver } from './python-locks/resolver.ts';
import { runScript } from './run-script.ts';

const clis = new Map<string, PythonCli>(Object.entries(pythonVersions));

await runScript(async (signal) => {
  const named = process.argv.slice(2);
  const chosen = (named.length > 0 ? named : [...clis.keys()]).map((name) => ({ name, cli: cliNamed(name) }));
  await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-lock-'));
  const resolve = await resolver(folder.path, signal);
  for (const { name, cli } of chosen) {
    await writeFile(cli.lock, lockText(name, await resolve(cli)));
    console.log(`wrote ${relative('', fileURLToPath(cli.lock))}`);
  }
  return 0;
});

function cliNamed(name: string): PythonCli {
  const cli = clis.get(name);
  if (cli !== undefined) return cli;
  throw new OffsiteError(`There is no CLI '${name}' from PyPI.`, {
    code: 'UNKNOWN_CLI',
    kind: 'input',
    hint: `Name some of: ${[...clis.keys()].join(', ')}.`,
  });
}
