import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pLimit from 'p-limit';
import { connectEngine } from '../../src/engine/connect.ts';
import { median, printMeasurements } from '../table.ts';
import { type Agent, noopPlan, openAgent } from './batch.ts';
import { compareBuilt } from './built.ts';
import { type FloorNetwork, floorTrial, pipelinedFloors } from './floor.ts';
import { compareSealed, sealedModels } from './sealed.ts';

/**
 * The cost of a trial next to the engine's own cost: whole no-op trials, recorded and reported to the
 * embedded service, compared with the strict floor (see floor.ts), alternating in one run; sealed trials with
 * a model (see sealed.ts); ten trials of a case that share one prepare; and twenty trials that share one built
 * environment. With `--built`, only the last of these; with `--sealed`, only the sealed ones.
 *
 * A ratio below 1 does not mean that Offsite is faster than the engine: the floor runs the same containers and
 * commands, and Offsite overlaps more of them. `--json` also has the floor that people know, `--network none`.
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
const goals = {
  'one at a time': 1.05,
  '8 at a time': 1.05,
  'sealed, one at a time': 1,
  'sealed, 8 at a time': 1,
  '10 that share a prepare': 1.05,
  '20 that share a build': 1.05,
} as const;
type Compare = keyof typeof goals;

await using engine = await connectEngine({ instance: `bench-${randomUUID()}` });
const dataFolder = mkdtempSync(join(tmpdir(), 'offsite-bench-'));
try {
  const found = await engine.findImage(image);
  if (!found) throw new Error(`the engine has no image ${image}: offsite engine base-image`);
  const imageId = found.id;
  const models = sealedModels(dataFolder);
  await using agent = await openAgent(engine, dataFolder, models);
  await agent.run(noopPlan(image, 1, 1), 1);

  const floors = (network: FloorNetwork, concurrency: number) => {
    if (concurrency === 1) return pipelinedFloors(engine, imageId, network, perRound);
    const limit = pLimit(concurrency);
    return Promise.all(
      Array.from({ length: perRound }, () => limit(() => floorTrial(engine, imageId, network))),
    );
  };
  const compare = async (concurrency: number): Promise<Compared> => {
    const times = { floor: [] as number[], strictFloor: [] as number[], trial: [] as number[] };
    let roundTrips = 0;
    for (let round = 0; round < rounds; round++) {
      times.floor.push(await milliseconds(() => floors('none', concurrency)));
      times.strictFloor.push(await milliseconds(() => floors('disabled', concurrency)));
      const before = engine.roundTrips;
      times.trial.push(await milliseconds(() => trials(agent, concurrency)));
      roundTrips += engine.roundTrips - before;
    }
    return compared(times, roundTrips);
  };
  /** Sealed trials with three turns of a model, next to their own floors; see sealed.ts. */
  const compareSealedTrials = async (concurrency: number): Promise<Compared> => {
    const times = { floor: [] as number[], strictFloor: [] as number[], trial: [] as number[] };
    let roundTrips = 0;
    for (let round = 0; round < rounds; round++) {
      const request = { image: { name: image, id: imageId }, models, count: perRound, concurrency };
      const measured = await compareSealed(agent, engine, request);
      times.floor.push(measured.floorMs);
      times.strictFloor.push(measured.strictFloorMs);
      times.trial.push(measured.trialMs);
      roundTrips += measured.roundTrips;
    }
    return compared(times, roundTrips);
  };

  const all = !values.sealed && !values.built;
  const result: Partial<Record<Compare, Compared>> = {};
  if (all) {
    result['one at a time'] = await compare(1);
    result['8 at a time'] = await compare(8);
  }
  if (all || values.sealed) {
    result['sealed, one at a time'] = await compareSealedTrials(1);
    result['sealed, 8 at a time'] = await compareSealedTrials(8);
  }
  if (all || values.built) {
    const floorMs = (await milliseconds(() => floors('disabled', 1))) / perRound;
    if (all) result['10 that share a prepare'] = await comparePrepared(agent, floorMs);
    result['20 that share a build'] = await compareBuilt(agent, engine, prepareSeconds, floorMs);
  }
  show(result);
} finally {
  rmSync(dataFolder, { recursive: true, force: true });
}

/** Milliseconds, of one trial or of all that share something. */
interface Compared {
  trialMs: number;
  strictFloorMs: number;
  floorMs?: number;
  roundTrips?: number;
}

type Times = Record<'floor' | 'strictFloor' | 'trial', number[]>;

function compared({ floor, strictFloor, trial }: Times, roundTrips: number): Compared {
  return {
    trialMs: median(trial) / perRound,
    strictFloorMs: median(strictFloor) / perRound,
    floorMs: median(floor) / perRound,
    roundTrips: roundTrips / rounds / perRound,
  };
}

function show(result: Partial<Record<Compare, Compared>>): void {
  const ratios = Object.entries(result).map(([trials, each]) => {
    const ratio = each.trialMs / each.strictFloorMs;
    return { trials, ...each, ratio, goal: goals[trials as Compare] };
  });
  if (values.json) console.log(JSON.stringify(ratios, null, 2));
  else
    printMeasurements(
      ratios.flatMap(({ trials, trialMs, strictFloorMs, goal, roundTrips }) => [
        {
          what: trials,
          unit: 'ms',
          measured: trialMs,
          floor: strictFloorMs,
          goal: { of: 'ratio', bound: 'at most', value: goal },
        },
        ...(roundTrips === undefined
          ? []
          : [{ what: `${trials}: requests to the engine`, unit: '', measured: roundTrips }]),
      ]),
    );
}

/** `perRound` no-op trials, as two runs of a batch. */
function trials(agent: Agent, concurrency: number): Promise<void> {
  return agent.run(noopPlan(image, 2, perRound / 2), concurrency);
}

/** Ten trials of a case with a slow prepare, compared with one such prepare plus ten floors. */
async function comparePrepared(agent: Agent, floorMs: number): Promise<Compared> {
  // A new script each time, so that no snapshot of an earlier measurement is used.
  const prepare = `sleep ${prepareSeconds} # ${randomUUID()}`;
  const trialMs = await milliseconds(() => agent.run(noopPlan(image, 1, 10, { prepare }), 1));
  return { trialMs, strictFloorMs: prepareSeconds * 1000 + 10 * floorMs };
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
