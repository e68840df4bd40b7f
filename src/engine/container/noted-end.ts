import { processEnds } from '../../bounds/sandbox.ts';
import type { RunningContainer } from './running-container.ts';

const pollMs = 100;

/**
 * Whether the engine knows that the container does not run. It may notice the end a moment later than a
 * request that fails because of it.
 */
export async function isNotedAsEnded({ port, id }: RunningContainer): Promise<boolean> {
  const { clock, containers } = port;
  for (
    const until = clock.now() + processEnds.time.containerNoted;
    (await containers.state(id)).isRunning;
    await clock.sleep(pollMs)
  ) {
    if (clock.now() > until) return false;
  }
  return true;
}
