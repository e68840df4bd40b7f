import { OffsiteError } from '../../offsite-error.ts';
import { removeContainer } from '../container/remove.ts';
import { isDead } from '../liveness.ts';
import { ownedContainers } from '../owned-objects.ts';
import type { EnginePort } from '../port/engine-port.ts';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
/** Above what builds may take; it is for a container of that name that is nobody's build. */
const LONGEST_BUILD_MS = 2 * 3_600_000;

/**
 * Waits while another agent builds a snapshot in the container `name`; that a name is unique on an engine
 * makes the container the lock. Resolves when it is gone. A dead agent's is removed, so that a build does not
 * wait for a sweep. One round trip a look.
 */
export async function otherBuildOver(
  port: EnginePort,
  instance: string,
  name: string,
  signal?: AbortSignal,
): Promise<void> {
  const { clock } = port;
  const giveUpAt = clock.now() + LONGEST_BUILD_MS;
  let bound = FIRST_PAUSE_MS;
  while (clock.now() < giveUpAt) {
    // Not all at the same time: some agents may wait for this build.
    await clock.sleep(bound * (0.5 + Math.random() / 2), signal);
    bound = Math.min(bound * 2, LONGEST_PAUSE_MS);
    const owned = await ownedContainers(port, signal);
    const lock = owned.find((container) => container.name === name);
    if (lock === undefined) return;
    const siblings = owned.filter((container) => container.instance === lock.instance);
    // One of our own is what an earlier build could not remove: builds of one process wait for each other
    // before they come here.
    if (lock.instance === instance || isDead(siblings, clock.now())) {
      await removeContainer(port, lock.id);
      return;
    }
  }
  throw new OffsiteError(`The container ${name} has been in the way of a snapshot for hours.`, {
    code: 'ENGINE_SNAPSHOT_BUSY',
    kind: 'infrastructure',
    hint: `See who made it (docker inspect ${name}), and remove it.`,
  });
}
