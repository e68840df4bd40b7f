import { connectEngine } from '../../src/engine/connect.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { touch } from '../engine/touch.ts';

/** What an agent does that works until {@link letGo}. */
export const held = 'touch done.txt; until [ -e /tmp/go ]; do sleep 0.1; done';

/** Has the agent of a run that is {@link held} end, so that no test depends on how long it takes. */
export async function letGo(run: string): Promise<void> {
  await using engine = await connectEngine({ instance: `test-let-go-${process.pid}` });
  const filters = { label: [`offsite.run=${run}`] };
  const containers = await dockerOf(engine).listContainers({ filters });
  for (const { Id } of containers) await touch(engine, Id, '/tmp/go');
}
