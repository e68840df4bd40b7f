import { graceMs, isMarker } from '../../../engine/liveness.ts';
import { ownedContainers } from '../../../engine/owned-objects.ts';
import { plural } from '../../../text/quantities.ts';
import { engineCheck } from '../check.ts';

/**
 * Containers of Offsite processes that were killed. The next run removes them, so the user need not do
 * anything.
 */
export const leftovers = engineCheck('leftovers', async ({ port }, { clock, signal }) => {
  const containers = await ownedContainers(port, signal);
  const markers = containers.filter((container) => isMarker(container) && container.state === 'running');
  const living = new Set(markers.map(({ instance }) => instance));
  const dead = containers.filter(
    ({ instance, createdAt }) => !living.has(instance) && clock.now() - createdAt > graceMs,
  );
  if (dead.length === 0) {
    return {
      state: 'ok',
      found: `no containers of processes that were killed; Offsite processes on this engine: ${living.size}`,
    };
  }
  const found = `${plural(dead.length, 'container')} of Offsite processes that were killed`;
  return { state: 'warn', found, fix: 'The next run removes them. To remove them now: offsite engine clean' };
});
