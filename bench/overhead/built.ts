import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../../src/engine/engine.ts';
import { contextHash } from '../../src/suite/build-context.ts';
import { noEnvironment, type PlannedBuild } from '../../src/suite/environment.ts';
import type { SuitePlan } from '../../src/suite/plan.ts';
import { type Agent, noopPlan } from './batch.ts';

/** How many trials share one built environment. */
const trials = 20;

/**
 * No-op trials of a built environment, compared with one such build by the engine alone plus as many floors.
 * The build has one slow step, as real ones have.
 *
 * @param floorMs milliseconds of one floor
 */
export async function compareBuilt(agent: Agent, engine: Engine, stepSeconds: number, floorMs: number) {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-bench-context-'));
  try {
    const buildMs = await milliseconds(() => buildAlone(engine, folder, dockerfileOf(stepSeconds)));
    const plan = builtPlan({
      name: 'Dockerfile',
      file: join(folder, 'Dockerfile'),
      place: 'bench',
      dockerfile: dockerfileOf(stepSeconds),
      args: {},
      images: {},
      context: { folder, ignore: '', hash: contextHash(folder, []) },
    });
    const trialMs = await milliseconds(() => agent.run(plan, 1));
    return { trialMs, strictFloorMs: buildMs + trials * floorMs };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** New each time, so that neither a snapshot nor the engine's cache has it. */
function dockerfileOf(stepSeconds: number): string {
  return `FROM offsite/base\nRUN sleep ${stepSeconds} && echo ${randomUUID()} > /built\n`;
}

async function buildAlone(engine: Engine, folder: string, dockerfile: string): Promise<void> {
  const name = `offsite-bench/${randomUUID()}:latest`;
  const builder = await engine.builder();
  await builder.build({
    name,
    dockerfile,
    labels: {},
    args: {},
    proxies: {},
    target: undefined,
    secret: undefined,
    context: { folder, ignore: '', members: [] },
    timeoutMs: 600_000,
    onOutput: () => undefined,
    signal: AbortSignal.timeout(600_000),
  });
  await engine.port.remove('image', name);
}

/** Two cases with the same environment. */
function builtPlan(build: PlannedBuild): SuitePlan {
  const plan = noopPlan('offsite/base', 2, trials / 2);
  const environment = { ...noEnvironment, build };
  return {
    ...plan,
    cases: plan.cases.map(({ request, local }) => ({ request, local: { ...local, environment } })),
  };
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
