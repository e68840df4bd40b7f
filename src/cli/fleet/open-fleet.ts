import { OffsiteError } from '../../base/offsite-error.ts';
import { connectFleet, type FleetConnection } from '../../fleet/connect.ts';
import { folderStorage } from '../../fleet/storage/folder-storage.ts';
import { s3Storage } from '../../fleet/storage/s3-storage.ts';
import type { FleetStorage } from '../../fleet/storage/storage.ts';
import type { CommandContext } from '../context.ts';

/** Connects to the fleet's server. The context closes the connection. */
export async function openFleet(context: CommandContext, name?: string): Promise<FleetConnection> {
  const connection = await connectFleet(context.config.fleet, context.env, name);
  context.closeWith(connection);
  return connection;
}

/** The storage that the configuration names; undefined without one. */
export function openStorage({ config }: CommandContext): FleetStorage | undefined {
  const { storage } = config.fleet;
  return storage && ('folder' in storage ? folderStorage(storage.folder) : s3Storage(storage.s3));
}

/** Throws `FLEET_SERVICE_MISSING` if the machines of a fleet would each use a service of their own. */
export async function requireService(context: CommandContext): Promise<void> {
  const { platform } = await context.service();
  if (!platform) return;
  throw new OffsiteError('the machines of a fleet need one Eval Service, and none is configured', {
    code: 'FLEET_SERVICE_MISSING',
    kind: 'input',
    hint: 'Set OFFSITE_URL or service.url of offsite.yaml, on all machines. `offsite serve` is one.',
  });
}
