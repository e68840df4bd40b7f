import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pLimit from 'p-limit';
import { connectEngine } from '../../src/engine/connect.ts';
import { type Agent, noopPlan, openAgent } from './batch.ts';
import { compareBuilt } from './built.ts';
import { type FloorNetwork, floorTrial } from './floor.ts';
import { compareSealed, sealedModels } from './sealed.ts';

/**
 * The cost of a trial next to the engine's own cost: whole no-op trials, recorded and reported to the
 * embedded service, compared with the floor and a stricter one (see floor.ts), alternating in one run; and
 * ten trials of a case that share one prepare; and twenty trials that share one built environment. With
 * `--built`, only the last of these; with `--sealed`, only sealed trials with a model (see sealed.ts).
 */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    built: { type: 'boolean', default: false },
    sealed: { type: 'boolean', default: false },
  },
});
const rounds = values.quick ? 2 : 5;
const perRound = values.quick ? 8 : 16;
const prepareSeconds = values.quick ? 2 : 10;
const image = 'offsite/base';

await using engine = await connectEngine({ instance: `bench-${randomUUID()}` });
const dataFolder = mkdtempSync(join(tmpdir(), 'offsite-bench-'));
try {
  const found = await engine.findImage(image);
  if (!found) throw new Error(`the engine has no image ${image}: offsite engine base-image`);
  const imageId = found.id;
  const models = sealedModels(dataFolder);
  await using agent = await openAgent(engine, dataFolder, models);
  await agent.run(noopPlan(image, 1, 1), 1);

  const floors = (network: FloorNetwork, count: number, concurrency: number) => {
    const limit = pLimit(concurrency);
    return Promise.all(
      Array.from({ length: count }, () => limit(() => floorTrial(engine, imageId, network))),
    );
  };
  const compare = async (concurrency: number) => {
    const times = { floor: [] as number[], strictFloor: [] as number[], trial: [] as number[] };
    let roundTrips = 0;
    for (let round = 0; round < rounds; round++) {
      times.floor.push(await milliseconds(() => floors('none', perRound, concurrency)));
      times.strictFloor.push(await milliseconds(() => floors('disabled', perRound, concurrency)));
      const before = engine.roundTrips;
      times.trial.push(await milliseconds(() => trials(agent, concurrency)));
      roundTrips += engine.roundTrips - before;
    }
    const floorMs = median(times.floor) / perRound;
    const strictFloorMs = median(times.strictFloor) / perRound;
    const trialMs = median(times.trial) / perRound;
    return {
      floorMs,
      strictFloorMs,
      trialMs,
      ratio: trialMs / floorMs,
      ratioToStrictFloor: trialMs / strictFloorMs,
      roundTrips: roundTrips / rounds / perRound,
    };
  };

  /** Sealed trials with three turns of a model, next to their own floor; see sealed.ts. */
  const measureSealed = async (concurrency: number) => {
    const times = { floor: [] as number[], trial: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      const request = { image: { name: image, id: imageId }, models, count: perRound, concurrency };
      const measured = await compareSealed(agent, engine, request);
      times.floor.push(measured.floorMs / perRound);
      times.trial.push(measured.trialMs / perRound);
    }
    const [floorMs, trialMs] = [median(times.floor), median(times.trial)];
    return { floorMs, trialMs, ratio: trialMs / floorMs };
  };

  const measureBuilt = (floorMs: number) => compareBuilt(agent, engine, prepareSeconds, floorMs);
  if (values.sealed) show({ sealed: await measureSealed(1), sealedConcurrent8: await measureSealed(8) });
  else if (values.built) {
    const floorMs = (await milliseconds(() => floors('none', perRound, 1))) / perRound;
    const built = await measureBuilt(floorMs);
    show({ ratioBuilt: round(built.ratio), floorMs, built });
  } else await measureAll();

  async function measureAll() {
    const sequential = await compare(1);
    const concurrent8 = await compare(8);
    const sealed = await measureSealed(1);
    const sealedConcurrent8 = await measureSealed(8);
    const prepared = await comparePrepared(agent, sequential.floorMs);
    const built = await measureBuilt(sequential.floorMs);
    const result = {
      ratioSequential: round(sequential.ratio),
      ratioConcurrent8: round(concurrent8.ratio),
      ratioSealed: round(sealed.ratio),
      ratioSealedConcurrent8: round(sealedConcurrent8.ratio),
      ratioPrepared: round(prepared.ratio),
      ratioBuilt: round(built.ratio),
      roundTripsPerTrial: round(sequential.roundTrips),
      sequential,
      concurrent8,
      sealed,
      sealedConcurrent8,
      prepared,
      built,
    };
    show(result);
  }
} finally {
  rmSync(dataFolder, { recursive: true, force: true });
}

function show(result: object): void {
  if (values.json) console.log(JSON.stringify(result, null, 2));
  else console.table(result);
}

/** `perRound` no-op trials, as two runs of a batch. */
function trials(agent: Agent, concurrency: number): Promise<void> {
  return agent.run(noopPlan(image, 2, perRound / 2), concurrency);
}

/** Ten trials of a case with a slow prepare, compared with one such prepare plus ten floors. */
async function comparePrepared(agent: Agent, floorMs: number) {
  // A new script each time, so that no snapshot of an earlier measurement is used.
  const prepare = `sleep ${prepareSeconds} # ${randomUUID()}`;
  const totalMs = await milliseconds(() => agent.run(noopPlan(image, 1, 10, { prepare }), 1));
  const floorTotalMs = prepareSeconds * 1000 + 10 * floorMs;
  return { totalMs, floorTotalMs, ratio: totalMs / floorTotalMs };
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

function median(numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

function round(ratio: number): number {
  return Math.round(ratio * 100) / 100;
}
