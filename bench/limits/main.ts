import { parseArgs } from 'node:util';
import { systemClock } from '../../src/base/clock.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { type Asked, askModel } from '../../test/gateway/limits/ask-model.ts';
import { type LimitedServerOptions, limitedServer } from '../../test/gateway/limits/limited-server.ts';
import { printTable } from '../table.ts';

/**
 * `maxParallel: auto` next to fixed numbers, at a model whose room changes: 24 trials ask it over HTTP, one
 * request after the other. Each setting has a model of its own, whose room changes in the same way.
 * `possible` is what would be answered if exactly as many requests were in flight as the model has room for.
 */
const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
});
/** Room in each part of the time. */
const room = [8, 16, 4, 12];
const partMs = values.quick ? 10_000 : 60_000;
const trialsAtATime = 24;
const most = 32;
const fixed = [4, 6, 8, 12, 16, 24];
const times = { firstMs: 100, restMs: 900 };
const models: Record<string, Pick<LimitedServerOptions, 'beyond' | 'retryAfter'>> = {
  refuses: { beyond: 'refuses' },
  'refuses, Retry-After: 1': { beyond: 'refuses', retryAfter: 1 },
  queues: { beyond: 'queues' },
};

interface Measured extends Pick<Asked, 'trials' | 'lost' | 'answers' | 'refusals'> {
  /** A part of what is possible. */
  used: number;
  /** The most requests that were at the model at a time. */
  peak: number;
  limits?: number[];
}

const result: Record<string, { auto: Measured; fixed: Record<number, Measured>; ofBestFixed: number }> = {};
for (const [name, model] of Object.entries(models)) {
  const [auto, ...others] = await Promise.all([
    measure(model, { auto: true, most }),
    ...fixed.map((maxParallel) => measure(model, maxParallel)),
  ]);
  const best = Math.max(...others.filter(({ lost }) => lost === 0).map(({ answers }) => answers));
  result[name] = {
    auto,
    fixed: Object.fromEntries(others.map((each, index) => [fixed[index], each])),
    ofBestFixed: thousandths(auto.answers / best),
  };
  if (values.json) continue;
  console.log(`a model that ${name}: auto answers ${result[name].ofBestFixed} of the best fixed number`);
  printTable(
    Object.entries({ auto: { ...auto, limits: auto.limits?.join(' ') }, ...result[name].fixed }).map(
      ([limit, each]) => ({ limit, ...each }),
    ),
  );
}
if (values.json) console.log(JSON.stringify(result, null, 2));
const failed = Object.values(result).filter(({ auto, ofBestFixed }) => auto.lost > 0 || ofBestFixed < 0.85);
if (failed.length > 0) process.exitCode = 1;

async function measure(
  model: Pick<LimitedServerOptions, 'beyond' | 'retryAfter'>,
  maxParallel: number | { auto: true; most: number },
): Promise<Measured> {
  await using server = await limitedServer({ capacity: room[0] ?? 1, ...model, ...times });
  await using gateway = openGateway({
    models: { limited: ModelConfig.parse({ wire: 'openai-chat', baseUrl: server.url, maxParallel }) },
    env: {},
    clock: systemClock,
    scripted: (file) => {
      throw new Error(`no scripted model is measured, and ${file} is one`);
    },
  });
  const ending = new AbortController();
  const asking = askModel(gateway, { atATime: trialsAtATime, requests: 5, until: ending.signal });
  const limits: number[] = [];
  for (const capacity of room) {
    server.capacity = capacity;
    for (let part = 0; part < 4; part++) {
      await systemClock.sleep(partMs / 4);
      limits.push(gateway.limitOf('limited')?.limit ?? 0);
    }
  }
  const { answered: answers } = server;
  ending.abort();
  const asked = await asking;
  const possible = room.reduce((sum, each) => sum + (each * partMs) / (times.firstMs + times.restMs), 0);
  return {
    ...asked,
    answers,
    used: thousandths(answers / possible),
    peak: server.peak,
    ...(typeof maxParallel === 'object' && { limits }),
  };
}

function thousandths(number: number): number {
  return Math.round(number * 1_000) / 1_000;
}
