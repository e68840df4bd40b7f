import { randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { systemClock } from '../../src/clock.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { startRelay } from '../../src/gateway/relay/start-relay.ts';
import { settleHeap } from '../../src/heap.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { startServer } from '../service/server-process.ts';
import type { ClientTimes } from './client-order.ts';
import { inSandbox, onHost, putClient } from './clients.ts';
import { type ReadyTimes, startOnce } from './ready.ts';
import { quantile, summaryOf, thousandths } from './summary.ts';

/**
 * The cost of the path from a sealed sandbox to its model. The same client sends requests to the same
 * upstream (a) on the host, directly over loopback, and (b) in a sandbox, through relay and gateway, with
 * metering and records; both alternate in one run. Also measures when a sandbox with a relay has started and
 * when its relay is ready, next to a sandbox without one.
 */
const { values } = parseArgs({
  options: { json: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false } },
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

// Like the agent.
settleHeap();
await using engine = await connectEngine({ instance: `bench-${randomUUID()}` });
await using upstream = await startServer('../gateway/upstream-server.ts', String(bodyBytes));
const imageId = (await engine.findImage('offsite/base'))?.id;
if (imageId === undefined) throw new Error('the engine has no image offsite/base: offsite base-image');
const spec: ContainerSpec = {
  imageId,
  network: 'none',
  security: 'compatible',
  memoryBytes: 2 ** 30,
  cpus: engine.capabilities.cpus,
  pids: 128,
  workingDir: '/workspace',
};

const ready: ReadyTimes[] = [];
for (let start = 0; start < rounds; start++) ready.push(await startOnce(engine, spec));

const direct: ClientTimes[] = [];
const relayed: ClientTimes[] = [];
await compare();

const floor = summaryOf(direct, bodyBytes);
const ours = summaryOf(relayed, bodyBytes);
const result = {
  addedP50Ms: thousandths(ours.p50Ms - floor.p50Ms),
  addedP99Ms: thousandths(ours.p99Ms - floor.p99Ms),
  addedP50MsAt50: thousandths(ours.p50MsAt50 - floor.p50MsAt50),
  addedP99MsAt50: thousandths(ours.p99MsAt50 - floor.p99MsAt50),
  addedFirstByteMs: thousandths(ours.firstByteP50Ms - floor.firstByteP50Ms),
  megabytesPerSecond: ours.megabytesPerSecondDown,
  megabytesPerSecondUp: ours.megabytesPerSecondUp,
  sandboxAloneMs: median(ready.map(({ sandboxAloneMs }) => sandboxAloneMs)),
  sandboxStartedMs: median(ready.map(({ sandboxStartedMs }) => sandboxStartedMs)),
  relayReadyMs: median(ready.map(({ relayReadyMs }) => relayReadyMs)),
  direct: floor,
  relayed: ours,
};
if (values.json) console.log(JSON.stringify(result, null, 2));
else console.table(result);

async function compare(): Promise<void> {
  const config = { wire: 'openai-chat', baseUrl: `${upstream.url}/v1`, hostedTools: 'allow' };
  await using gateway = openGateway({
    models: { bench: ModelConfig.parse(config) },
    env: {},
    clock: systemClock,
    scripted: (file) => {
      throw new Error(`no scripted model is measured, and ${file} is one`);
    },
  });
  await using session = gateway.open({
    trial: 'bench',
    models: { agent: ['bench'] },
    budget: {},
    hosts: [],
    keep: async () => '',
  });
  const signal = AbortSignal.timeout(30 * 60_000);
  await using relay = startRelay(
    engine,
    { network: spec.network, image: spec.imageId, handler: session.handler, labels: {}, clock: systemClock },
    signal,
  );
  await using sandbox = await relay.startSandbox(
    (network) => engine.createContainer({ ...spec, network }),
    signal,
  );
  await putClient(sandbox);
  await relay.ready;
  for (let round = 0; round < rounds; round++) {
    direct.push(await onHost({ ...work, origin: upstream.url, token: 'none' }));
    relayed.push(await inSandbox(sandbox, { ...work, origin: relay.origin, token: session.token('agent') }));
  }
}

function median(numbers: readonly number[]): number {
  return quantile(numbers, 0.5);
}
