import { randomBytes } from 'node:crypto';
import { mkdtempDisposable, readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { fillBatch } from '../../test/viewer/filled-ledger.ts';
import { printTable } from '../table.ts';

/**
 * How fast the evidence of 200 and of 2,000 trials is written and opened, and how much memory that takes,
 * next to `tar c` of the same files. Memory should not grow with the bytes. Also, how long an audit of 100 trials
 * takes, of the file and of the data folder. Needs no engine.
 * `npm run -s bench -- evidence [--json] [--quick]`.
 */
const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
});
const root = new URL('../../', import.meta.url).pathname;
await using folder = await mkdtempDisposable(join(tmpdir(), 'offsite-bench-evidence-'));
const rows: Record<string, string | number>[] = [];

// Fewer trials, with more in each: what takes long is to store them, because each waits for the disk.
const [sizes, scale] = values.quick ? [[20, 60], 16] : [[200, 2_000], 1];
for (const trials of sizes) {
  const data = join(folder.path, `data-${trials}`);
  await fill(data, trials, scale);
  const mebibytes = Number((await execa('du', ['-sm', data])).stdout.split('\t')[0]);
  const add = async (what: string, command: readonly string[], goal?: string) => {
    const { ms, peak } = await measured(command);
    rows.push({
      trials,
      what,
      MiB: mebibytes,
      'MiB/s': Math.round(mebibytes / (ms / 1000)),
      'peak MiB': peak,
      ...(goal !== undefined && { goal }),
    });
  };
  const [tar, bundle] = [join(folder.path, 'all.tar'), join(folder.path, 'evidence')];
  // The files are in the memory of the system from here on.
  await add('tar c (floor)', ['tar', 'cf', tar, '-C', data, '.']);
  const cli = [process.execPath, '--import', noting(), join(root, 'bin/offsite.mjs')];
  const writing = [...cli, 'export', '--evidence', bundle, '--data-folder', data];
  await add('export --evidence', writing, '100 MiB/s, and a peak like that of the smaller batch');
  const open = `const { openEvidence } = await import(${JSON.stringify(join(root, 'src/evidence/open-evidence.ts'))});
    const { systemClock: clock } = await import(${JSON.stringify(join(root, 'src/base/clock.ts'))});
    const { signal } = new AbortController();
    await openEvidence(${JSON.stringify(bundle)}, ${JSON.stringify(join(folder.path, `opened-${trials}`))}, { signal, clock });`;
  await add('openEvidence', [process.execPath, '--import', noting(), '--input-type=module', '-e', open]);
  rows.push({ trials, what: 'size of the bundle', MiB: Math.round((await stat(bundle)).size / 1024 ** 2) });
}
{
  const trials = 100;
  const data = join(folder.path, `data-${trials}`);
  await fill(data, trials);
  const bundle = join(folder.path, 'evidence');
  const main = join(root, 'bin/offsite.mjs');
  const cli = (...args: string[]) => [process.execPath, '--import', noting(), main, ...args];
  await measured(cli('export', '--evidence', bundle, '--data-folder', data));
  for (const [what, args] of [
    ['audit of the data folder', ['audit', '--data-folder', data]],
    ['audit of the file', ['audit', bundle]],
  ] as const) {
    const { ms, peak } = await measured(cli(...args));
    rows.push({ trials, what, seconds: Number((ms / 1000).toFixed(2)), 'peak MiB': peak, goal: '2 s' });
  }
}
if (values.json) console.log(JSON.stringify(rows, null, 2));
else printTable(rows);

/** A data folder in which each trial has about 256 KiB, or `scale` times that: half of it random, half text. */
async function fill(dataFolder: string, trials: number, scale = 1): Promise<void> {
  using ledger = new Ledger(dataFolder, systemClock);
  const contents = await Promise.all(
    Array.from({ length: trials }, async (_, index) => ({
      artifact: await ledger.blobs.put(randomBytes(scale * 64 * 1024)),
      text: await ledger.blobs.put(Buffer.from(`line ${index} of what it printed\n`.repeat(scale * 4096))),
      archive: await ledger.workspaces.store(one(randomBytes(scale * 64 * 1024))),
    })),
  );
  let next = 0;
  await fillBatch(ledger, {
    id: 'batch_bench',
    variants: ['one', 'two'],
    repeats: 10,
    cases: Array.from({ length: trials / 20 }, (_, index) => `case-${index}`),
    found: () => {
      const { artifact, text, archive } = contents[next++] ?? contents[0] ?? never();
      return {
        verdict: 'passed',
        artifacts: [{ path: 'out.bin', ...artifact }],
        environment: [{ phase: 'prepare', description: 'prepare', log: text.sha256 }],
        left: { kind: 'archive', sha256: archive.sha256, byteSize: 1, storedSize: archive.byteSize },
      };
    },
  });
}

async function* one(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}

function never(): never {
  throw new Error('there is one for each trial');
}

/** From its start to its exit. */
async function measured([file = '', ...args]: readonly string[]): Promise<{
  ms: number;
  peak: number | string;
}> {
  const started = performance.now();
  // An audit of what the bench makes up ends with 1 or 3.
  const { exitCode = -1 } = await execa(file, args, { cwd: root, reject: false });
  if (![0, 1, 3].includes(exitCode)) throw new Error(`${args.join(' ')} ended with ${exitCode}`);
  const ms = performance.now() - started;
  return { ms, peak: file === 'tar' ? '' : Number(await readFile(peakFile(), 'utf8')) };
}

function peakFile(): string {
  return join(folder.path, 'peak');
}

/** A module that writes the process's peak of resident memory, in MiB, when it exits. */
function noting(): string {
  const write = `fs.writeFileSync(${JSON.stringify(peakFile())}, String(Math.round(process.resourceUsage().maxRSS / 1024)))`;
  return `data:text/javascript,${encodeURIComponent(`import fs from 'node:fs'; process.on('exit', () => ${write});`)}`;
}
