import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Engine } from '../../src/engine/engine.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import type { SuitePlan } from '../../src/suite/plan.ts';
import { dockerOf } from '../../test/engine/docker-of.ts';
import { type Agent, noopPlan } from './batch.ts';
import { type FloorContainer, type FloorNetwork, runIn, startedContainer } from './floor.ts';

/**
 * A sealed trial: a harness that asks its model three times through the gateway, and a fresh sandbox for
 * grading. Its floor is the engine's own cost of the same containers and programs: a container whose network
 * the sandbox shares, with a small server in the place of the model. The strict floor has no network of the
 * engine's there either, only the loopback that each network namespace has.
 */

/** Asks three times, each time with the whole conversation, as harnesses do. */
const harness = `
const messages = [{ role: 'user', content: 'Say something.' }];
for (let turn = 0; turn < 3; turn++) {
  const answer = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + process.env.OPENAI_API_KEY },
    body: JSON.stringify({ model: 'bench', messages }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  const { choices } = await answer.json();
  messages.push(choices[0].message, { role: 'user', content: 'And then?' });
}`;
const run = ['node', '--input-type=module', '--eval', harness];

const port = 8080;
const answer = JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'Something.' } }] });
const server = `require('http').createServer((request, response) => {
  request.resume().on('end', () => response.end(${JSON.stringify(answer)}));
}).listen(${port}, '127.0.0.1', () => console.log('ready'))`;

/** The configuration of the model `bench`, whose script is written into `folder`. */
export function sealedModels(folder: string): Record<string, ModelConfig> {
  const scripted = join(folder, 'bench-model.yaml');
  writeFileSync(scripted, 'turns:\n  - { text: Something., repeat: true }\n');
  return { bench: ModelConfig.parse({ scripted }) };
}

export interface SealedRequest {
  image: { name: string; id: string };
  models: Record<string, ModelConfig>;
  count: number;
  concurrency: number;
}

/** Milliseconds of `count` floors of both kinds, and of as many trials. */
export async function compareSealed(agent: Agent, engine: Engine, request: SealedRequest) {
  const { image, models, count, concurrency } = request;
  const limit = pLimit(concurrency);
  const floors = (network: FloorNetwork) =>
    milliseconds(() =>
      Promise.all(Array.from({ length: count }, () => limit(() => sealedFloor(engine, image.id, network)))),
    );
  const floorMs = await floors('none');
  const strictFloorMs = await floors('disabled');
  const before = engine.roundTrips;
  const trialMs = await milliseconds(() => agent.run(sealedPlan(image.name, models, count), concurrency));
  return { floorMs, strictFloorMs, trialMs, roundTrips: engine.roundTrips - before };
}

/** Each step waits only for the steps that it needs. All others run side by side. */
async function sealedFloor(engine: Engine, imageId: string, network: FloorNetwork): Promise<void> {
  const made: FloorContainer[] = [];
  const start = async (options: Parameters<typeof startedContainer>[2]) => {
    const container = await startedContainer(engine, imageId, options);
    made.push(container);
    return container;
  };
  try {
    const beside = start({ network: 'disabled' });
    const model = await start({ network, command: ['node', '--eval', server] });
    const [sandbox] = await Promise.all([
      start({ network: `container:${model.id}` }),
      listens(engine, model),
    ]);
    const env = [`OPENAI_BASE_URL=http://127.0.0.1:${port}/v1`, 'OPENAI_API_KEY=none'];
    await runIn(sandbox, run, env);
    await runIn(await beside, ['true']);
  } finally {
    await Promise.all(made.map((container) => container.remove({ force: true })));
  }
}

/** Resolves when the server has said that it is ready. */
async function listens(engine: Engine, { id }: FloorContainer): Promise<void> {
  const stream = await dockerOf(engine).getContainer(id).logs({ follow: true, stdout: true, stderr: true });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  stream.once('data', () => resolve()).once('end', () => reject(new Error('the server of the floor ended')));
  await promise;
  (stream as unknown as { destroy(): void }).destroy();
}

function sealedPlan(image: string, models: Record<string, ModelConfig>, count: number): SuitePlan {
  const plan = noopPlan(image, 2, count / 2, { run: shellLine(run) });
  return {
    ...plan,
    variants: plan.variants.map((variant) => ({ ...variant, model: 'bench', modelConfig: models.bench })),
  };
}

function shellLine(argv: readonly string[]): string {
  return argv.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
