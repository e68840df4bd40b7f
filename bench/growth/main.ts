import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { installPackage } from '../../test/package/install-package.ts';
import { median, printTable } from '../table.ts';
import { fillLedger } from './fill.ts';

/**
 * How long commands take, and how much memory, with 1000, 10,000 and 100,000 trials in the data folder, in
 * turn: medians in milliseconds, and the highest peak in MiB. Nobody should notice how much they have run, so
 * each should stay within 1.5 of the smallest folder. Without `--run`, no trial runs, and no engine is needed.
 * `npm run -s bench -- growth [--run] [--json] [--quick]`.
 */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    run: { type: 'boolean', default: false },
    /** An installed program to measure in place of this checkout. */
    program: { type: 'string' },
  },
});
const goal = 1.5;
const sizes = values.quick ? [1_000, 10_000] : [1_000, 10_000, 100_000];
const rounds = values.quick ? 3 : 7;

await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-bench-growth-'));
const program =
  values.program ?? join(await installPackage(folder.path), 'node_modules/offsite/bin/offsite.mjs');
const home = join(folder.path, 'home');
await mkdir(home);
await writeFile(
  join(home, 'suite.yaml'),
  `suite: { id: noop, name: No-op, prompt: nothing }
trials: 1
variants: [{ name: noop, model: none, harness: command, profile: noop, sandbox: local }]
cases: [{ id: one, name: One, verify: 'true' }]
`,
);
await writeFile(
  join(home, 'offsite.yaml'),
  "profiles: { noop: { run: 'true' } }\nsandboxes: { local: { image: offsite/base, memory: 256m } }\n",
);
const folders = sizes.map((trials) => ({ trials, dataFolder: join(folder.path, `data-${trials}`) }));
for (const { dataFolder, trials } of folders) await fillLedger(dataFolder, trials);

const commands: Record<string, readonly string[]> = {
  status: ['status'],
  batches: ['batches'],
  show: ['show', 'last'],
  ...(values.run && { run: ['run', 'suite.yaml'] }),
};
const measured = new Map<string, { ms: number[]; mebibytes: number[] }>();
// The first round compiles the program, and does not count.
for (let round = 0; round <= rounds; round++)
  for (const { dataFolder, trials } of folders) {
    for (const [name, args] of Object.entries(commands))
      add(`${name} ${trials}`, await measureCommand([...args, '--data-folder', dataFolder]), round);
    add(`view ${trials}`, await measureView(dataFolder), round);
  }

const table = [...Object.keys(commands), 'view'].map((name) => {
  const of = (trials: number) => measured.get(`${name} ${trials}`) ?? { ms: [], mebibytes: [] };
  const [first = 1, last = 1] = [sizes[0] ?? 0, sizes.at(-1) ?? 0].map((trials) => median(of(trials).ms));
  return {
    command: name,
    ...Object.fromEntries(sizes.map((trials) => [`${trials}: ms`, Math.round(median(of(trials).ms))])),
    ...Object.fromEntries(sizes.map((trials) => [`${trials}: MiB`, Math.max(...of(trials).mebibytes)])),
    growth: Math.round((last / first) * 100) / 100,
    goal,
  };
});
if (values.json) console.log(JSON.stringify(table, null, 2));
else printTable(table);

function add(name: string, { ms, mebibytes }: { ms: number; mebibytes: number }, round: number): void {
  if (round === 0) return;
  const all = measured.get(name) ?? { ms: [], mebibytes: [] };
  measured.set(name, all);
  all.ms.push(ms);
  all.mebibytes.push(mebibytes);
}

/** From its start to its exit. */
async function measureCommand(args: readonly string[]) {
  const peak = join(folder.path, 'peak');
  const started = performance.now();
  const { exitCode, stderr } = await execa(process.execPath, ['--import', noting(peak), program, ...args], {
    ...settings(),
    reject: false,
  });
  // `status` ends with 2, because no daemon runs.
  if (exitCode !== 0 && !(exitCode === 2 && args[0] === 'status'))
    throw new Error(`${args.join(' ')} exited with ${exitCode}: ${stderr}`);
  return { ms: performance.now() - started, mebibytes: Number(await readFile(peak, 'utf8')) };
}

/** From the start of `offsite view` to the whole list of batches. */
async function measureView(dataFolder: string) {
  const peak = join(folder.path, 'peak');
  const args = [program, 'view', '--data-folder', dataFolder];
  const started = performance.now();
  const { env, cwd } = settings();
  const viewer = spawn(process.execPath, ['--import', noting(peak), ...args], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = await once(createInterface({ input: viewer.stdout }), 'line');
  const address = String(line).trim();
  const token = new URL(address).hash.replace('#token=', '');
  const answer = await fetch(new URL('/api/batches', address), {
    headers: { authorization: `Bearer ${token}` },
  });
  if (!answer.ok) throw new Error(`the viewer answered ${answer.status}`);
  await answer.arrayBuffer();
  const ms = performance.now() - started;
  const ended = once(viewer, 'exit');
  viewer.kill('SIGTERM');
  await ended;
  return { ms, mebibytes: Number(await readFile(peak, 'utf8')) };
}

function settings() {
  const env = {
    HOME: home,
    XDG_CACHE_HOME: join(home, 'cache'),
    PATH: process.env.PATH,
    ...(process.env.DOCKER_HOST && { DOCKER_HOST: process.env.DOCKER_HOST }),
  };
  return { cwd: home, env, extendEnv: false } as const;
}

/** A module that writes the process's peak of resident memory, in MiB, when it exits. */
function noting(file: string): string {
  const write = `fs.writeFileSync(${JSON.stringify(file)}, String(Math.round(process.resourceUsage().maxRSS / 1024)))`;
  return `data:text/javascript,${encodeURIComponent(`import fs from 'node:fs'; process.on('exit', () => ${write});`)}`;
}
