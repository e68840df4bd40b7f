import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { installPackage } from '../../test/package/install-package.ts';
import { type Measurement, median, printMeasurements } from '../table.ts';

/**
 * How long short commands take, from the checkout and installed from the packed file, next to `node -e 0`, in
 * turn: medians in milliseconds. With `--run`, how long a run of one trial takes that does nothing, and how
 * much processor time of Offsite itself, from the packed file: the fastest and the median, next to the same.
 */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    run: { type: 'boolean', default: false },
  },
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
const result = values.run ? await oneTrial() : await commandTimes();
if (values.json) console.log(JSON.stringify(result, null, 2));
else printMeasurements(result);

/** Short commands, next to a Node that does nothing. */
async function commandTimes(): Promise<Measurement[]> {
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

  const floor = median(times.get('node') ?? []);
  return [...times].map(([what, all]) => ({ what, unit: 'ms', measured: median(all), floor }));
}

/** Runs of a suite of one trial, the first of which makes what later ones find. */
async function oneTrial(): Promise<Measurement[]> {
  const suite = {
    suite: { id: 'one', name: 'One', prompt: 'nothing' },
    trials: 1,
    variants: [{ name: 'noop', model: 'none', harness: 'command', profile: 'noop', sandbox: 'local' }],
    cases: [{ id: 'one', name: 'One', verify: 'true' }],
  };
  const config = {
    profiles: { noop: { run: 'true' } },
    sandboxes: { local: { image: 'offsite/base', memory: '256m' } },
  };
  // YAML reads JSON.
  await writeFile(join(home, 'suite.yaml'), JSON.stringify(suite));
  await writeFile(join(home, 'offsite.yaml'), JSON.stringify(config));
  const all: { ms: number; cpuMs: number; floorMs: number }[] = [];
  for (let run = 0; run <= runs; run++) {
    const floorMs = await milliseconds(['-e', '0']);
    const started = performance.now();
    const script = '"$@" > /dev/null && times';
    const args = ['-c', script, 'bash', process.execPath, programs.installed, 'run', 'suite.yaml'];
    const { stdout } = await execa('bash', args, { cwd: home, env, extendEnv: false });
    const ms = performance.now() - started;
    // User and system time of the shell, then of its children: `0m0.431s 0m0.080s`.
    const times = [...stdout.matchAll(/(\d+)m([\d.]+)s/g)].map(([, m, s]) => Number(m) * 60 + Number(s));
    const cpuMs = times.slice(2).reduce((sum, seconds) => sum + seconds * 1000, 0);
    if (run > 0) all.push({ ms, cpuMs, floorMs });
  }
  // The goal is that of a machine on which this takes 30 ms.
  const floor = median(all.map(({ floorMs }) => floorMs));
  const of = (what: string, numbers: readonly number[], goal?: Measurement['goal']): Measurement[] => [
    { what: `${what}, fastest`, unit: 'ms', measured: Math.min(...numbers), floor },
    { what: `${what}, median`, unit: 'ms', measured: median(numbers), floor, goal },
  ];
  return [
    ...of(
      'a run of one trial',
      all.map(({ ms }) => ms),
      { bound: 'at most', value: 550 },
    ),
    ...of(
      'its processor time',
      all.map(({ cpuMs }) => cpuMs),
    ),
  ];
}

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
