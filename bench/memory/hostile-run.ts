import { randomUUID } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { stringify } from 'yaml';
import type { BatchSummary } from '../../src/cli/output/summary.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import { type MeasuredCase, measuredCases, type Variant } from './hostile-cases.ts';
import { openHostileModel } from './hostile-model.ts';
import { commandLine, memoryOf } from './measured-run.ts';

export interface HostileMeasurement {
  /** The process's highest resident memory according to the kernel, in MiB. */
  residentMiB: number;
  /** The highest of ten samples per second, in MiB: the live heap, and bytes outside it. */
  heapUsedMiB: number;
  externalMiB: number;
  seconds: number;
  survived: boolean;
  /** How the process ended. */
  ended: string;
  trials: { id: string; isHonest: boolean; verdict: string; why: string }[];
}

interface HostileRequest {
  /** Is created; contains suite, configuration and data. */
  folder: string;
  variant: Variant;
  heapMiB: number;
  isQuick: boolean;
}

const lookEveryMs = 100;
/** Only for hangs. */
const timeoutMs = 30 * 60_000;
const trialsAtATime = 4;
const agents = fileURLToPath(new URL('./agents', import.meta.url));
const probe = new URL('./heap-probe.mjs', import.meta.url).href;

/**
 * Runs hostile and honest trials through the command line, in a process with a heap of this many MiB, and
 * watches it. Needs Linux.
 */
export async function hostileRun({
  folder,
  variant,
  heapMiB,
  isQuick,
}: HostileRequest): Promise<HostileMeasurement> {
  await using model = await openHostileModel();
  const cases = measuredCases(variant, isQuick);
  writeSuite({ folder, variant, cases, modelUrl: model.url, image: await imageWithPrintingCli() });
  const started = performance.now();
  const child = execa(
    process.execPath,
    [
      `--max-old-space-size=${heapMiB}`,
      '--import',
      probe,
      commandLine(),
      'run',
      join(folder, 'suite.yaml'),
      '--json',
      '--concurrency',
      String(trialsAtATime),
      '--config',
      join(folder, 'offsite.yaml'),
      '--data-folder',
      join(folder, 'data'),
    ],
    { timeout: timeoutMs, reject: false, stdio: ['ignore', 'pipe', 'pipe', 'pipe'], buffer: { fd3: false } },
  );
  const highest = { resident: 0, heap: 0, external: 0 };
  child.stdio[3]?.on('data', (lines: Buffer) => {
    for (const line of lines.toString().split('\n')) {
      const [heap = 0, external = 0] = line.split(' ').map(Number);
      highest.heap = Math.max(highest.heap, heap);
      highest.external = Math.max(highest.external, external);
    }
  });
  const looking = setInterval(() => {
    highest.resident = Math.max(highest.resident, memoryOf(child.pid)?.highest ?? 0);
  }, lookEveryMs);
  const ended = await child.finally(() => clearInterval(looking));
  const summary = summaryIn(ended.stdout);
  const trials = cases.map(({ id, isHonest }) => ({ id, isHonest, ...outcomeOf(summary, id) }));
  return {
    residentMiB: highest.resident,
    heapUsedMiB: Math.round(highest.heap / 2 ** 20),
    externalMiB: Math.round(highest.external / 2 ** 20),
    seconds: Math.round((performance.now() - started) / 1000),
    // Its exit code is not 0 if a trial is void.
    survived: ended.exitCode !== undefined && summary !== undefined,
    ended:
      summary !== undefined
        ? `exit code ${ended.exitCode}`
        : `${ended.shortMessage}\n${ended.stderr.slice(-3000)}`,
    trials,
  };
}

function outcomeOf(summary: BatchSummary | undefined, id: string): { verdict: string; why: string } {
  const trial = summary?.runs.find((run) => run.case === id)?.trials[0];
  if (!trial) return { verdict: 'none', why: '' };
  const { kind, phase, message } = trial.cause ?? {};
  const why = trial.cause ? `${kind}, ${phase}: ${message}` : (trial.failures?.join('; ') ?? '');
  return { verdict: trial.verdict, why: why.slice(0, 120) };
}

function summaryIn(stdout: string): BatchSummary | undefined {
  try {
    return JSON.parse(stdout) as BatchSummary;
  } catch {
    return undefined;
  }
}

/** The base image with another npm, which installs a CLI that prints what its prompt says. */
async function imageWithPrintingCli(): Promise<string> {
  await using engine = await connectEngine({ instance: `bench-${randomUUID()}` });
  const base = await engine.findImage('offsite/base');
  if (!base) throw new Error('the engine has no image offsite/base: offsite engine base-image');
  const npm = readFileSync(join(agents, 'npm'));
  const made = await engine.snapshot({
    parentImageId: base.id,
    container: {
      network: 'none',
      security: 'compatible',
      memoryBytes: 256 * 2 ** 20,
      cpus: 1,
      pids: 64,
      workingDir: '/',
    },
    key: npm.toString(),
    description: 'a CLI that prints what it is asked to',
    build: (container) => container.put([{ path: '/usr/local/bin/npm', content: npm, mode: 0o755 }]),
  });
  if (made.kind !== 'snapshot') throw new Error('the image of the measurement could not be made');
  return made.imageId;
}

interface SuiteParts {
  folder: string;
  variant: Variant;
  cases: readonly MeasuredCase[];
  modelUrl: string;
  image: string;
}

function writeSuite({ folder, variant, cases, modelUrl, image }: SuiteParts): void {
  cpSync(agents, join(folder, 'agents'), { recursive: true });
  const config = {
    models: { model: { wire: 'openai-chat', baseUrl: modelUrl, record: 'full' } },
    profiles: {
      agent: {
        ...(variant === 'command' && { run: 'bash "$OFFSITE_PROMPT_FILE"' }),
        folders: { '/opt/agents': 'agents' },
      },
    },
    sandboxes: {
      local: {
        image,
        harnessImage: image,
        network: 'model',
        memory: '1g',
        timeouts: { harness: '90s', verify: '60s', validator: '60s' },
      },
    },
  };
  const harness = variant === 'command' ? 'command' : 'pi';
  const suite = {
    suite: { id: `memory-${variant}`, prompt: '{{agent}}' },
    variants: [{ name: variant, model: 'model', harness, profile: 'agent', sandbox: 'local' }],
    cases: cases.map(({ id, isHonest, agent, validator }) => ({
      id,
      variables: { agent },
      verify: isHonest ? 'grep -q done done.txt' : 'true',
      ...(validator !== undefined && { validator: { source: validator } }),
    })),
  };
  writeFileSync(join(folder, 'offsite.yaml'), stringify(config));
  writeFileSync(join(folder, 'suite.yaml'), stringify(suite));
}
