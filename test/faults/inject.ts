import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { type Fate, openFaultFront } from './fault-front.ts';
import { faultPlan, planOf } from './fault-plan.ts';

const program = fileURLToPath(new URL('./agent-program.ts', import.meta.url));
const cache = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url));

const asRoot = (program: string, ...args: string[]) => void execFileSync(program, args);

export interface Fault {
  /** What happens to the agent's process, at which point (see agent-program.ts). */
  agent?: { kind: 'kill' | 'fill' | 'jump'; point: number };
  /** What the service does to the first requests of an operation; the rest passes. */
  service?: { operation: string; fates: Fate[] };
}

export interface Survived {
  /** Trials that the service has no result of. */
  lost: number;
  /**
   * Trials of which it accepted more than one result, or that it has twice, and runs that were started twice.
   */
  duplicates: number;
  /** Points that the first life of the agent got to; undefined where it did not come to its end. */
  points: number | undefined;
  /** Lives of the agent until everything was reported. */
  lives: number;
  /** Claims that the service was asked for. */
  claimed: number;
  /** What the agents said, for messages of tests. */
  said: string;
}

/** Lives after which an agent is given up. */
const mostLives = 4;

/**
 * Runs a batch through a fault: an agent's process, started again until everything is reported, and the
 * service in another.
 *
 * @param claims whether the service has claims
 * @param cases of the batch; more than {@link batchCases} are a set of batches
 * @param lives after which the agents are given up
 */
export async function survive(
  fault: Fault,
  { claims = false, cases = 1, lives = mostLives } = {},
): Promise<Survived> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-faults-'));
  const dataFolder = join(folder, 'data');
  mkdirSync(dataFolder);
  const isDisk = fault.agent?.kind === 'fill';
  if (isDisk) asRoot('mount', '-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', dataFolder);
  try {
    await using front = await openFaultFront(join(folder, 'service'), { claims });
    const { operation = '', fates = [] } = fault.service ?? {};
    const left = [...fates];
    front.fate = (asked) => (asked === operation ? (left.shift() ?? 'pass') : 'pass');
    const said: string[] = [];
    let points: number | undefined;
    for (let life = 1; ; life++) {
      const { kind = 'none', point = 0 } = (life === 1 && fault.agent) || {};
      const args = [program, dataFolder, front.url, front.key, kind, String(point), String(cases)];
      const ended = await execa(process.execPath, args, {
        env: { NODE_COMPILE_CACHE: cache },
        reject: false,
        timeout: 120_000,
      });
      said.push(`life ${life}: ${ended.exitCode ?? ended.signal}\n${ended.stderr}\n${ended.stdout}`);
      rmSync(join(dataFolder, 'filler'), { force: true });
      const outcome = ended.exitCode === 0 ? JSON.parse(ended.stdout) : undefined;
      if (life === 1) points = outcome?.points;
      if (outcome?.waiting === 0 || life === lives) {
        const claimed = front.asked.filter((operation) => operation === 'evals.claimTrial').length;
        return { ...(await resultsAt(front, cases)), points, lives: life, claimed, said: said.join('\n') };
      }
    }
  } finally {
    if (isDisk) asRoot('umount', '--lazy', dataFolder);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function resultsAt(front: Awaited<ReturnType<typeof openFaultFront>>, cases: number) {
  const found = { lost: 0, duplicates: 0 };
  for (const { request } of planOf(cases).cases) {
    const listed = (await front.ask('evals.runs.list', { caseId: request.id })) as {
      runs: { trials: { status: string }[] }[];
    };
    found.duplicates += Math.max(0, listed.runs.length - 1);
    const of = listed.runs.flatMap(({ trials }) => trials.filter(({ status }) => status === 'reported'));
    found.lost += Math.max(0, faultPlan.trials - of.length);
    found.duplicates += Math.max(0, of.length - faultPlan.trials);
  }
  const contents = [...front.accepted.values()].map((hashes) => hashes.size);
  found.duplicates += contents.reduce((sum, count) => sum + count - 1, 0);
  return found;
}
