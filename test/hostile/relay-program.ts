// An agent's process for the attack tests: a real gateway with a scripted model. Each connection to its port
// is what a sidecar's standard streams are, served as one trial's, which also has a shared socket. On its IPC channel it answers `resident`
// with the bytes that it occupies now, and `held` with what it still holds after a garbage collection.
import { createServer } from 'node:net';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';
import { systemClock } from '../../src/base/clock.ts';
import { settleHeap } from '../../src/base/host-program.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { serveRelay } from '../../src/gateway/relay/serve.ts';
import { openSharedSocket, socketName } from '../../src/gateway/relay/sidecar.ts';
import { scriptedUpstream } from '../../src/gateway/scripted/scripted-upstream.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';

settleHeap();
// Node opens them when they are first asked for, and they count as handles.
void [process.stdout, process.stderr];
const [script = '', upstream = ''] = process.argv.slice(2);
const models: Record<string, ModelConfig> = { scripted: ModelConfig.parse({ scripted: script }) };
if (upstream) {
  models.hostile = ModelConfig.parse({ wire: 'openai-chat', baseUrl: upstream, record: 'full' });
  models.shared = ModelConfig.parse({ wire: 'openai-chat', baseUrl: upstream, maxParallel: 1 });
}
const gateway = openGateway({
  models,
  env: {},
  clock: systemClock,
  scripted: (file) => scriptedUpstream(file, systemClock),
});
let trials = 0;
const server = createServer({ allowHalfOpen: false, noDelay: true }, async (socket) => {
  trials += 1;
  const session = gateway.open({
    trial: `trial-${trials}`,
    models: { agent: Object.keys(models) },
    budget: {},
    hosts: ['127.0.0.1'],
    keep: async () => 'sha',
    observe: () => undefined,
  });
  // The engine's stream is one of JavaScript's, in which many frames are read before anything else happens.
  const [inside, outside] = duplexPair();
  socket.on('error', () => outside.destroy()).on('close', () => outside.destroy());
  const shared = await openSharedSocket();
  if (!shared) throw new Error('this machine cannot have a shared socket');
  // A line of ours goes ahead of the relay's own bytes, so that whoever connects has the token and the socket.
  socket.write(`${session.token('agent')} ${join(shared.folder, socketName)}\n`);
  socket.pipe(inside).pipe(socket);
  const relay = serveRelay(outside, session.handler, shared.server);
  // A defect is what these tests look for; a broken session is what they make.
  relay.on('error', (error: Error & { code?: string }) => {
    if (error.code === 'RELAY_DEFECT' || process.env.SAY_ALL) console.error(error);
  });
  relay.once('close', () => void Promise.all([session, shared].map((made) => made[Symbol.asyncDispose]())));
});
process.on('message', async (asked) => {
  if (asked === 'resident') return void process.send?.(process.memoryUsage.rss());
  await collectGarbage();
  const { heapUsed, external, rss } = process.memoryUsage();
  process.send?.({
    alive: heapUsed + external,
    resident: rss,
    handles: process.getActiveResourcesInfo().filter((name) => name !== 'Timeout').length,
  });
});
server.listen(0, '127.0.0.1', () => process.send?.(server.address()));

/**
 * Objects that hold native memory give it back in a later turn, and only then are others of theirs garbage.
 */
async function collectGarbage(): Promise<void> {
  for (let at = 0; at < 3; at += 1) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
