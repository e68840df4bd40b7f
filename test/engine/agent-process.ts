// An agent in a process of its own, for sweep.test.ts: holds one container until SIGTERM, after which it
// cleans up.
import { once } from 'node:events';
import { dockerOf } from './docker-of.ts';
import { startedContainer, testEngine } from './engine-fixture.ts';

await using engine = await testEngine();
const container = await startedContainer(engine);
// The marker starts beside the container and may be a moment behind it.
while (!(await isMarked())) await new Promise((resolve) => setTimeout(resolve, 20));
console.log(JSON.stringify({ instance: engine.instance, containerId: container.id }));
await once(process, 'SIGTERM');

async function isMarked(): Promise<boolean> {
  const markers = await dockerOf(engine).listContainers({
    filters: { label: [`offsite.instance=${engine.instance}`, 'offsite.role=marker'] },
  });
  return markers.length > 0;
}
