import { connectFleet, type FleetConnection } from '../../fleet/connect.ts';
import { folderStorage } from '../../fleet/storage/folder-storage.ts';
import { s3Storage } from '../../fleet/storage/s3-storage.ts';
import type { FleetStorage } from '../../fleet/storage/storage.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { CommandContext } from '../context.ts';

/** Connects to the fleet's server. The context closes the connection. */
export async function openFleet(context: CommandContext, name?: string): Promise<FleetConnection> {
  const connection = await connectFleet(context.config.fleet, context.env, name);
  context.closeWith(connection);
  return connection;
}

/** The storage that the configuration names. Throws `FLEET_STORAGE_MISSING` if it names none. */
export function openStorage({ config }: CommandContext): FleetStorage {
  const { storage } = config.fleet;
  if (storage) return 'folder' in storage ? folderStorage(storage.folder) : s3Storage(storage.s3);
  throw new OffsiteError('the fleet has no storage for plans and records', {
    code: 'FLEET_STORAGE_MISSING',
    kind: 'input',
    hint: 'Name one in offsite.yaml: fleet: {storage: {folder: /mnt/offsite}}, or {storage: {s3: {bucket: NAME}}}.',
  });
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
