import { Semaphore } from '../../base/semaphore.ts';
import { containerDamaged, isEngineFailure } from '../port/failure.ts';
import { pathStat } from './archives.ts';
import type { DockerClient } from './client.ts';
import { engineMessage, engineStatus } from './failure.ts';

/** Milliseconds until a path that was not found is looked for again. */
const againMs = 500;
/** How often the engine is asked while processes go on. */
const triesUnpaused = 3;

interface Measured {
  SizeRw?: number;
  HostnamePath?: string;
  HostsPath?: string;
  ResolvConfPath?: string;
}

/**
 * Measures the bytes of a container's layer and of the files that the engine mounts into it from its own
 * folder. A process that is root can write to those too, without limit, and the engine's size leaves them
 * out. A container without a network has one such file, which takes a round trip more; one on a network has
 * three.
 */
export function writtenBytesMeter(client: DockerClient) {
  // While a container is paused for one measurement, another one does not let it go on.
  const turns = new Semaphore(1);
  return async (id: string, signal?: AbortSignal): Promise<number> => {
    const { SizeRw, HostnamePath, HostsPath, ResolvConfPath } = await measured(client, id, turns, signal);
    const mounted = [
      ...(HostnamePath ? ['/etc/hostname'] : []),
      ...(HostsPath ? ['/etc/hosts'] : []),
      ...(ResolvConfPath ? ['/etc/resolv.conf'] : []),
    ];
    const sizes = await Promise.all(mounted.map((path) => sizeOf(client, id, path, signal)));
    // The engine leaves out a zero.
    return sizes.reduce((sum, size) => sum + size, SizeRw ?? 0);
  };
}

/**
 * The engine gives up at a path that is too long, and with containerd's image store also if a file disappears
 * meanwhile. It answers 500 then, or -1 bytes. Processes that make and remove files all the time would never
 * be measured, so they are paused if a few tries fail.
 */
async function measured(
  client: DockerClient,
  id: string,
  turns: Semaphore,
  signal: AbortSignal | undefined,
): Promise<Measured> {
  const measure = async () => {
    try {
      const doing = 'measuring what a container wrote';
      const found = await client.ask<Measured>(doing, `GET /containers/${id}/json?size=true`, { signal });
      return (found.SizeRw ?? 0) < 0 ? undefined : found;
    } catch (thrown) {
      if (engineStatus(thrown) === 500 && /\.Usage failed\b/.test(engineMessage(thrown))) return undefined;
      throw thrown;
    }
  };
  for (let left = triesUnpaused; left > 0; left--) {
    const found = await measure();
    if (found) return found;
  }
  using _turn = await turns.acquire(signal ?? new AbortController().signal);
  await using _paused = await pause(client, id);
  const found = await measure();
  if (found) return found;
  // Its processes are still: what they left, such as a path that is too long, is the cause.
  throw containerDamaged('The engine cannot measure what the container wrote.');
}

/** Disposing lets it go on. Does nothing if it does not run, or has been paused by somebody else. */
async function pause(client: DockerClient, id: string): Promise<AsyncDisposable> {
  const post = async (doing: string, verb: 'pause' | 'unpause') => {
    try {
      await client.ask(doing, `POST /containers/${id}/${verb}`);
      return true;
    } catch (thrown) {
      if (isEngineFailure(thrown, 'conflict') || isEngineFailure(thrown, 'not-found')) return false;
      throw thrown;
    }
  };
  const isPaused = await post('pausing a container', 'pause');
  return {
    async [Symbol.asyncDispose]() {
      if (isPaused) await post('letting a paused container go on', 'unpause');
    },
  };
}

async function sizeOf(client: DockerClient, id: string, path: string, signal?: AbortSignal): Promise<number> {
  for (let isLast = false; ; isLast = true) {
    try {
      return (await pathStat(client, id, path, signal)).size;
    } catch (thrown) {
      // The engine finds the path from the container's root, where an agent may have moved its folder away.
      const isMissing = isEngineFailure(thrown, 'not-found') || isEngineFailure(thrown, 'refused');
      if (!isMissing) throw thrown;
      if (isLast) throw containerDamaged(`The engine does not find ${path} any more.`, thrown);
      // An engine may also be short of something for a moment.
      await client.clock.sleep(againMs, signal);
    }
  }
}
