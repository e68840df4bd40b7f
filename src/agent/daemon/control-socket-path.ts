import { join } from 'node:path';

/** Who serves a socket of a data folder: each has one of its own. */
export type SocketOwner = 'daemon' | 'fleet-worker';

export function controlSocketOf(dataFolder: string, owner: SocketOwner = 'daemon'): string {
  return join(dataFolder, owner === 'daemon' ? 'control.sock' : 'fleet.sock');
}
