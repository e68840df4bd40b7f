import { type BackoffLimits, backoff } from '../../base/backoff.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { removeContainer } from '../container/remove.ts';
import { isDead } from '../liveness.ts';
import { ownedContainers } from '../owned-objects.ts';
import type { EnginePort } from '../port/engine-port.ts';

/** Milliseconds between two checks. Random, because several Offsite processes may wait for one build. */
const waits: BackoffLimits = { first: 100, longest: 2_000 };
/** Milliseconds added to every wait, so that a short build does not cause a burst of requests. */
const leastMs = 50;
/**
 * Milliseconds, longer than any build may take. The wait ends after them, because the container of that name
 * may not belong to a build.
 */
export const longestBuildMs = 2 * 3_600_000;

/**
 * Waits while another Offsite process builds a snapshot in the container `name`. A name is unique on an
 * engine, so the container is the lock. Resolves when it is gone. Removes the container if its process is
 * dead, so that a build does not wait for a sweep. One round trip per check.
 */
export async function otherBuildOver(
  port: EnginePort,
  instance: string,
  name: string,
  signal?: AbortSignal,
): Promise<void> {
  const { clock } = port;
  const giveUpAt = clock.now() + longestBuildMs;
  for (let checks = 1; clock.now() < giveUpAt; checks += 1) {
    await clock.sleep(leastMs + backoff(checks, waits, Math.random), signal);
    const owned = await ownedContainers(port, signal);
    const lock = owned.find((container) => container.name === name);
    if (lock === undefined) return;
    const siblings = owned.filter((container) => container.instance === lock.instance);
    // A container of this instance is left from an earlier build that could not remove it: builds of one
    // process wait for each other before they get here.
    if (lock.instance === instance || isDead(siblings, clock.now())) {
      await removeContainer(port, lock.id);
      return;
    }
  }
  throw new OffsiteError(`The container ${name} has blocked the build of a snapshot for hours.`, {
    code: 'ENGINE_SNAPSHOT_BUSY',
    kind: 'infrastructure',
    hint: `Check who created it (docker inspect ${name}), and remove it.`,
  });
}
