// An agent in a process of its own, for another-agent.ts: holds one container until SIGTERM, after which it
// cleans up.
import { once } from 'node:events';
import { startedContainer, testEngine } from './engine-fixture.ts';

await using engine = await testEngine();
const container = await startedContainer(engine);
console.log(JSON.stringify({ instance: engine.instance, containerId: container.id }));
await once(process, 'SIGTERM');
