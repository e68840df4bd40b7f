import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { settleHeap } from '../../src/base/host-program.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import { startServer } from '../service/server-process.ts';
import { type Measurement, median, printMeasurements } from '../table.ts';
import type { ClientOrder, ClientTimes } from './client-order.ts';
import { clientIn } from './clients.ts';
import { openPlace } from './place.ts';
import { type ReadyTimes, startOnce } from './ready.ts';
import { measureStreams, modelsAt, printStreams, type StreamRow } from './streams/measure.ts';
import { type Summary, summaryOf } from './summary.ts';

/**
 * The cost of the path from a sealed sandbox to its model. The same client sends requests to the same
 * upstream (a) on the host, directly over loopback, and (b) in a sandbox, through relay and gateway, with
 * metering and records; both alternate in one run. Also measures streams of all wires, translated and not
 * (`streams`), when a sandbox with a relay has started, and when its relay is ready, next to a sandbox
 * without one. `--only streams` measures nothing else.
 */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});
const rounds = values.quick ? 2 : 5;
const bodyBytes = 64 * 2 ** 20;
const work = {
  model: 'bench',
  calls: values.quick ? 300 : 1000,
  parallel: 50,
  streams: 50,
  bodies: 4,
  bodyBytes,
};
const streamWork = values.quick
  ? { rounds: 1, shortStreams: 20, longBytes: 20_000_000 }
  : { rounds: 3, shortStreams: 100, longBytes: 100_000_000 };

// Like the agent.
settleHeap();
await using engine = await connectEngine({ instance: `bench-${randomUUID()}` });
const imageId = (await engine.findImage('offsite/base'))?.id;
if (imageId === undefined) throw new Error('the engine has no image offsite/base: offsite engine base-image');
const spec: ContainerSpec = {
  imageId,
  network: 'none',
  security: 'compatible',
  memoryBytes: 2 ** 30,
  cpus: engine.capabilities.cpus,
  pids: 128,
  workingDir: '/workspace',
};

const measurements = values.only === 'streams' ? [] : await requests();
const rows = await streams();
if (values.json) console.log(JSON.stringify({ measurements, streams: rows }, null, 2));
else {
  if (measurements.length > 0) printMeasurements(measurements);
  printStreams(rows);
}

async function requests(): Promise<Measurement[]> {
  const ready: ReadyTimes[] = [];
  for (let start = 0; start < rounds; start++) ready.push(await startOnce(engine, spec));
  const { direct, relayed } = await compare();
  const floor = summaryOf(direct, bodyBytes);
  const ours = summaryOf(relayed, bodyBytes);
  const of = (what: string, name: keyof Summary, goal?: Measurement['goal'], unit = 'ms'): Measurement => ({
    what,
    unit,
    measured: ours[name],
    floor: floor[name],
    goal,
  });
  const added = (value: number) => ({ of: 'added', bound: 'at most', value }) as const;
  const atLeast = (value: number) => ({ bound: 'at least', value }) as const;
  const started = (name: keyof ReadyTimes) => median(ready.map((times) => times[name]));
  return [
    of('one request, median', 'p50Ms', added(0.7)),
    of('one request, 99th of 100', 'p99Ms'),
    of('50 at once, median', 'p50MsAt50', added(5)),
    of('50 at once, 99th of 100', 'p99MsAt50'),
    of('first byte of a stream, median', 'firstByteP50Ms'),
    of('a large answer', 'megabytesPerSecondDown', atLeast(250), 'MB/s'),
    of('a large request', 'megabytesPerSecondUp', atLeast(150), 'MB/s'),
    {
      what: 'sandbox with a relay has started',
      unit: 'ms',
      measured: started('sandboxStartedMs'),
      floor: started('sandboxAloneMs'),
    },
    { what: 'its relay is ready', unit: 'ms', measured: started('relayReadyMs') },
  ];
}

async function compare(): Promise<{ direct: ClientTimes[]; relayed: ClientTimes[] }> {
  await using upstream = await startServer('../gateway/upstream-server.ts', String(bodyBytes));
  const config = { wire: 'openai-chat', baseUrl: `${upstream.url}/v1`, hostedTools: 'allow' };
  const client = clientIn<ClientOrder, ClientTimes>('client.ts');
  const direct: ClientTimes[] = [];
  const relayed: ClientTimes[] = [];
  for (let round = 0; round < rounds; round++) {
    // One place has not enough requests for all rounds.
    await using place = await openPlace(engine, spec, { bench: config });
    const { sandbox, origin, token } = place;
    await client.put(sandbox);
    direct.push(await client.onHost({ ...work, origin: upstream.url, token: 'none' }));
    relayed.push(await client.inSandbox(sandbox, { ...work, origin, token }));
  }
  return { direct, relayed };
}

async function streams(): Promise<StreamRow[]> {
  await using upstream = await startServer('../gateway/streams/stream-server.ts');
  await using place = await openPlace(engine, spec, modelsAt(upstream.url));
  return await measureStreams(place, upstream.url, streamWork);
}
