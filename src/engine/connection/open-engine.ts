import type { Clock } from '../../clock.ts';
import { openClient } from '../docker/client.ts';
import { introduce } from '../docker/negotiate.ts';
import { openDocker } from '../docker/open.ts';
import { openPodman } from '../podman/open.ts';
import type { OpenEngine } from '../port/engine-port.ts';
import type { EngineAddress } from './address.ts';

/**
 * Asks the engine at an address whether it is Docker or Podman, and connects to it as that. Throws a
 * `connection` failure, or `ENGINE_TOO_OLD`.
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
