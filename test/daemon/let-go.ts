import { connectEngine } from '../../src/engine/connect.ts';
import { dockerOf } from '../engine/docker-of.ts';

/** What an agent does that works until {@link letGo}. */
export const held = 'touch done.txt; until [ -e /tmp/go ]; do sleep 0.1; done';

/** Has the agent of a run that is {@link held} end, so that no test depends on how long it takes. */
export async function letGo(run: string): Promise<void> {
  await using engine = await connectEngine({ instance: `test-let-go-${process.pid}` });
  const filters = { label: [`offsite.run=${run}`] };
  for (const { Id } of await dockerOf(engine).listContainers({ filters })) {
    try {
      const exec = await dockerOf(engine)
        .getContainer(Id)
        .exec({ Cmd: ['touch', '/tmp/go'] });
      await exec.start({ Detach: true });
    } catch (error) {
      // A daemon that lost the trial may remove its sandbox at this moment.
      if (![404, 409].includes((error as { statusCode?: number }).statusCode ?? 0)) throw error;
    }
  }
}
