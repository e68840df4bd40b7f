import { connectEngine } from '../../src/engine/connect.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { until } from '../engine/engine-fixture.ts';
import { hasFile } from '../engine/has-file.ts';
import { touch } from '../engine/touch.ts';

/** The `run` of a trial that waits until it is let go. */
export const untilLetGo = 'touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.1; done';

/** Resolves once a trial of a batch waits to be let go. */
export async function untilBegun(batch: string): Promise<void> {
  await using engine = await connectEngine({ instance: `test-begun-${process.pid}` });
  const filters = { label: [`offsite.batch=${batch}`], status: ['running'] };
  await until(async () => {
    const containers = await dockerOf(engine).listContainers({ filters });
    const begun = await Promise.all(containers.map(({ Id }) => hasFile(engine, Id, '/tmp/begun')));
    return begun.includes(true);
  });
}

/**
 * Lets the waiting trials of a batch come to their end, those that run now and those that will, until `ended`
 * is settled.
 */
export async function letGo(batch: string, ended: Promise<unknown>): Promise<void> {
  await using engine = await connectEngine({ instance: `test-let-go-${process.pid}` });
  const filters = { label: [`offsite.batch=${batch}`], status: ['running'] };
  const reported = new Set<string>();
  let over = false;
  const ending = ended.finally(() => {
    over = true;
  });
  while (!over) {
    for (const { Id } of await dockerOf(engine).listContainers({ filters })) {
      if (reported.has(Id)) continue;
      reported.add(Id);
      await touch(engine, Id, '/tmp/go');
    }
    await Promise.race([ending, new Promise((resolve) => setTimeout(resolve, 100))]);
  }
}
