import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { stringify } from 'yaml';

/** A batch for a separate process. */
export interface MeasuredBatch {
  /** Is created; contains suite, configuration and data. */
  folder: string;
  /** The script that is the agent. */
  run: string;
  cases: number;
  trialsPerCase: number;
  concurrency: number;
}

/** Resident memory of the process, in MiB. */
export interface Measured {
  command: string;
  /** From the kernel, which misses no peak. */
  highest: number;
  /** Sampled ten times a second. */
  curve: number[];
}

const lookEveryMs = 100;
/** 500 trials take some minutes; this is only for hangs. */
const timeoutMs = 30 * 60_000;

/**
 * Runs the batch through the command line and watches its memory. Needs Linux. Throws if a trial did not
 * pass.
 */
export async function measuredRun(batch: MeasuredBatch): Promise<Measured> {
  const suite = writeSuite(batch);
  const command = commandLine();
  const config = [
    '--config',
    join(batch.folder, 'offsite.yaml'),
    '--data-folder',
    join(batch.folder, 'data'),
  ];
  const child = execa(
    process.execPath,
    [
      command,
      'run',
      suite,
      ...config,
      '--concurrency',
      String(batch.concurrency),
      '--fail-under',
      '1',
      '--json',
    ],
    { timeout: timeoutMs, stdin: 'ignore', buffer: { stdout: false } },
  );
  child.stdout.resume();
  const curve: number[] = [];
  let highest = 0;
  const looking = setInterval(() => {
    const memory = memoryOf(child.pid);
    if (memory === undefined) return;
    curve.push(memory.now);
    highest = Math.max(highest, memory.highest);
  }, lookEveryMs);
  try {
    await child;
  } finally {
    clearInterval(looking);
  }
  return { command, highest, curve };
}

/** The built command if there is one, as the package ships it; else the sources. */
export function commandLine(): string {
  const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
  const built = at('dist/src/cli/main.js');
  return existsSync(built) ? built : at('src/cli/main.ts');
}

function writeSuite({ folder, run, cases, trialsPerCase }: MeasuredBatch): string {
  mkdirSync(folder);
  const local = { memory: '256m', network: 'none' };
  const config = { profiles: { worker: { run } }, sandboxes: { local } };
  writeFileSync(join(folder, 'offsite.yaml'), stringify(config));
  const suite = join(folder, 'suite.yaml');
  writeFileSync(
    suite,
    stringify({
      suite: { id: 'memory', prompt: 'nothing' },
      trials: trialsPerCase,
      variants: [{ name: 'worker', model: 'none', harness: 'command', profile: 'worker' }],
      cases: Array.from({ length: cases }, (_, index) => ({ id: `case-${index}`, verify: 'true' })),
    }),
  );
  return suite;
}

/** Undefined once the process has gone. */
export function memoryOf(pid: number | undefined): { now: number; highest: number } | undefined {
  const status = `/proc/${pid}/status`;
  if (!existsSync(status)) return undefined;
  const text = readFileSync(status, 'utf8');
  const mebibytes = (name: string) =>
    Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1]) / 1024);
  // A zombie has no memory.
  return text.includes('VmRSS') ? { now: mebibytes('VmRSS'), highest: mebibytes('VmHWM') } : undefined;
}
