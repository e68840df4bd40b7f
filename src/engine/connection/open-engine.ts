import type { Clock } from '../../clock.ts';
import { openClient } from '../docker/client.ts';
import { introduce } from '../docker/negotiate.ts';
import { openDocker } from '../docker/open.ts';
import { openPodman } from '../podman/open.ts';
import type { OpenEngine } from '../port/engine-port.ts';
import type { EngineAddress } from './address.ts';

/**
 * Connects to the engine at an address, as what it says it is. Throws a `connection` failure, or
 * `ENGINE_TOO_OLD`.
 */
export async function openEngine(
  address: EngineAddress,
  clock: Clock,
  signal?: AbortSignal,
): Promise<OpenEngine> {
  const client = await openClient(address, clock);
  try {
    const { apiVersion, isPodman } = await introduce(client, signal);
    return await (isPodman ? openPodman : openDocker)(address, clock, apiVersion);
  } finally {
    client.close();
  }
}
