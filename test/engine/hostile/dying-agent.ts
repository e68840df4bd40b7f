// An agent in a separate process, for killed-agent.long.test.ts: runs to the phase that its argument names,
// prints it, and stays there.
import { setInterval } from 'node:timers';
import { startedContainer, testEngine, testSpec } from '../engine-fixture.ts';

const phase = process.argv[2];
const repository = process.argv[4];
const engine = await testEngine(repository === undefined ? {} : { snapshots: { repository } });

function reached(): void {
  console.log(JSON.stringify({ instance: engine.instance }));
}

const stay = new Promise<never>(() => setInterval(() => undefined, 1_000_000));

switch (phase) {
  case 'create':
    await engine.createContainer(await testSpec(engine));
    reached();
    break;
  case 'services': {
    const { signal } = new AbortController();
    const spec = await testSpec(engine);
    const network = await engine.openNetwork({ imageId: spec.imageId, labels: {} }, signal);
    const member = { address: '10.213.0.2', hostName: 'db', network: 'none' as const, hosts: {} };
    const joined = await network.join(member, signal);
    const program = { command: ['sleep', 'infinity'], env: {}, memoryFolders: [] };
    const service = await engine.createService({ ...spec, ...joined, service: program }, signal);
    await service.start(signal);
    reached();
    break;
  }
  case 'start':
    await startedContainer(engine);
    reached();
    break;
  case 'exec': {
    const container = await startedContainer(engine);
    await container.exec({
      argv: ['sh', '-c', 'trap "" TERM HUP; setsid -f sleep 1000 > /dev/null 2>&1; echo up; sleep 1000'],
      timeoutMs: 1_000_000,
      onOutput: reached,
    });
    break;
  }
  case 'snapshot': {
    const { imageId, ...container } = await testSpec(engine);
    const build = async () => {
      reached();
      await stay;
    };
    await engine.snapshot({ parentImageId: imageId, container, key: String(process.argv[3]), build });
    break;
  }
  default:
    throw new Error(`no such phase: ${phase}`);
}
await stay;
