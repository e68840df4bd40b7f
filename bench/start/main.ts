import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { installPackage } from '../../test/package/install-package.ts';

/**
 * How long short commands take, from the checkout and installed from the packed file, next to `node -e 0`, in
 * turn: medians in milliseconds.
 */
const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
});
const runs = values.quick ? 5 : 20;

const commands = {
  version: ['--version'],
  help: ['--help'],
  helpOfCommand: ['run', '--help'],
  status: ['daemon', 'status'],
  completeOptions: ['complete', '--', 'run', '--'],
  completeBatches: ['complete', '--', 'show', ''],
};

await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-bench-start-'));
const project = await installPackage(folder.path);
const programs = {
  checkout: join(import.meta.dirname, '../../bin/offsite.mjs'),
  installed: join(project, 'node_modules/offsite/bin/offsite.mjs'),
};
const home = join(folder.path, 'home');
await mkdir(home);
const env = { HOME: home, XDG_CACHE_HOME: join(home, 'cache'), PATH: process.env.PATH };
// A ledger with a batch, as on a machine that is in use.
using ledger = new Ledger(join(home, '.local/share/offsite'), systemClock);
ledger.batches.add({ service: 'embedded', id: 'batch_1', suite: 'small', file: undefined, runs: [] });

const starts = new Map([['node', ['-e', '0']]]);
for (const [place, program] of Object.entries(programs))
  for (const [name, args] of Object.entries(commands)) starts.set(`${place} ${name}`, [program, ...args]);
const times = new Map([...starts.keys()].map((name): [string, number[]] => [name, []]));
// The first start compiles, the second one uses what it compiled.
for (const args of starts.values()) await milliseconds(args);
for (let run = 0; run < runs; run++)
  for (const [name, args] of starts) times.get(name)?.push(await milliseconds(args));

const nodeMs = median(times.get('node') ?? []);
const result = Object.fromEntries(
  [...times].map(([name, all]) => [name, { ms: round(median(all)), timesNode: round(median(all) / nodeMs) }]),
);
if (values.json) console.log(JSON.stringify(result, null, 2));
else console.table(result);

async function milliseconds(args: readonly string[]): Promise<number> {
  const started = performance.now();
  // `status` ends with 2, because no daemon runs.
  const { exitCode } = await execa(process.execPath, args, {
    cwd: home,
    env,
    extendEnv: false,
    reject: false,
  });
  if (exitCode !== 0 && !(exitCode === 2 && args.includes('status')))
    throw new Error(`${args.join(' ')} exited with ${exitCode}`);
  return performance.now() - started;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

function round(number: number): number {
  return Math.round(number * 10) / 10;
}
