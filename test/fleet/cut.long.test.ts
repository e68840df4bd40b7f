import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { connectEngine } from '../../src/engine/connect.ts';
import { held, letGo } from '../daemon/let-go.ts';
import { countFinished } from '../daemon/sharing.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { openCutProxy } from './cut-proxy.ts';
import { openFleetPlace } from './fleet-place.ts';

interface Moment {
  monotonic: number;
  clock: number;
}

/** When sandboxes of one process were first and last seen to run. */
interface Seen {
  first: Moment;
  last: Moment;
}

/** Notes, until it is stopped, when each process had sandboxes of a run that were running, by both clocks. */
function watchSandboxes(docker: ReturnType<typeof dockerOf>, run: string) {
  const seen = new Map<string, Seen>();
  let isOver = false;
  const watching = (async () => {
    for (; !isOver; await sleep(50)) {
      const now = { monotonic: performance.now(), clock: Date.now() };
      const filters = { label: [`offsite.run=${run}`], status: ['running'] };
      for (const { Labels } of await docker.listContainers({ filters })) {
        const agent = Labels['offsite.instance'] ?? '';
        const known = seen.get(agent);
        if (known) known.last = now;
        else seen.set(agent, { first: now, last: now });
      }
    }
  })();
  return {
    seen: () => [...seen.values()],
    async stop() {
      isOver = true;
      await watching;
      return [...seen.values()];
    },
  };
}

test('a worker that is cut off ends its sandbox before another worker starts the trial', async () => {
  await using fleet = await openFleetPlace();
  await using proxy = await openCutProxy(fleet.server.port);
  await using engine = await connectEngine({ instance: `test-cut-${process.pid}` });
  const docker = dockerOf(engine);
  const file = fleet.suite({ cases: [{ id: 'cut', verify: 'cat done.txt' }], run: held });
  const cutOff = await fleet.worker('cut-off', ['-c', '1'], { address: proxy.address });
  const batch = await fleet.started(file);
  const run = (await fleet.runs('cut'))[0]?.id ?? '';
  const watch = watchSandboxes(docker, run);
  const soon = { timeout: 60_000, interval: 100 };
  await expect.poll(() => watch.seen().length, soon).toBe(1);
  const other = await fleet.worker('other', ['-c', '1']);
  // The first worker shows that it runs the agent before it is cut off.
  const phase = async () => {
    const { raw } = await fleet.client.workflow.getHandle(batch).describe();
    const [pending] = raw.pendingActivities ?? [];
    return Buffer.from(pending?.heartbeatDetails?.payloads?.[0]?.data ?? []).toString();
  };
  await expect.poll(phase, soon).toContain('harness');
  const cutAt = performance.now();
  proxy.cut();
  await cutOff.printed(/lost a running trial to another agent/);
  await expect.poll(() => watch.seen().length, { timeout: 120_000, interval: 100 }).toBe(2);
  const [first, second] = await watch.stop();
  if (!first || !second) throw new Error('two sandboxes were seen');
  const gap = {
    monotonic: second.first.monotonic - first.last.monotonic,
    clock: second.first.clock - first.last.clock,
  };
  expect(gap.monotonic).toBeGreaterThan(0);
  expect(gap.clock).toBeGreaterThan(0);
  // The server gives it away ten seconds after the last heartbeat.
  expect(first.last.monotonic - cutAt).toBeLessThan(10_000);
  proxy.restore();
  // Again and again: on a busy machine, the trial may move to one more sandbox.
  const status = async () => {
    await letGo(run);
    return (await fleet.runs('cut'))[0]?.trials?.[0]?.status;
  };
  await expect.poll(status, soon).toBe('reported');
  for (const worker of [cutOff, other]) worker.kill('SIGTERM');
  await Promise.all([cutOff.ended, other.ended]);
  expect(countFinished(['cut-off', 'other'].map(fleet.folderOf))).toEqual({
    finished: [0, 1],
    twice: 0,
    invalid: 1,
  });
});
