import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { remembered } from '../../base/deadline.ts';
import { type StoredFile, storedFiles } from '../archive/stored-file.ts';
import { ownedLabel, ownershipLabels } from '../owned-objects.ts';
import type { Mount } from '../port/containers.ts';
import type { Capabilities, EnginePort } from '../port/engine-port.ts';

/**
 * The machines that there are files for, by the kernel's names. `npm run compile` makes the files. Sandboxes
 * on others are refused.
 */
export const ownMachines = ['x86_64', 'aarch64'] as const;

/** The volume of the files. It stays, as the base image does. */
const volume = 'offsite-own-files';

/**
 * On the volume, and on empty volumes beside it, one for each set of contents: its value there is the names
 * of the files that have these contents. An engine changes no label of a volume, so what was learned later
 * needs another one.
 */
const filesLabel = 'offsite.own-files';

/** Milliseconds after which what was written survives a loss of power: kernels have it on disk by then. */
const durableMs = 60_000;

/** Where it is in a sandbox. Nothing else uses that folder. */
export const ownFolder = '/offsite-shield';

/** The volume in a sandbox, and in a container that lives as long as this process: so nobody removes it. */
export const ownFilesMount: Mount = { volume, path: ownFolder, readOnly: true };

/** Offsite's own files in a sandbox, by their absolute paths. */
export interface OwnFiles {
  mount: Mount;
  /** The library that is compiled from `shield.c`. */
  shield: string;
  /** The program that is compiled from `init.c`. */
  init: string;
}

/**
 * Puts Offsite's own files into a volume of the engine, which sandboxes mount read-only. A step that can
 * write to a loaded library can take over the shells that report the steps, because they share its unchanged
 * pages with the file. So no process of a sandbox, root included, may be able to write to it.
 *
 * The function that it returns finds the files, or writes them with the help of an image: one round trip if
 * an earlier process recorded where they are, about five if not.
 */
export function ownFilesVolume(
  port: EnginePort,
  instance: string,
  { arch }: Pick<Capabilities, 'arch'>,
): (imageId: string) => Promise<OwnFiles> {
  const once = remembered<OwnFiles>();
  const find = async (imageId: string): Promise<OwnFiles> => {
    const read = async (name: string) => ({
      content: await readFile(new URL(`./${arch}/${name}`, import.meta.url)),
      mode: 0o755,
    });
    const wanted: StoredFile[] = [
      { ...(await read('shield.so')), ending: '.so' },
      // What people see of it in lists of processes.
      { ...(await read('init')), beginning: 'offsite-init-', ending: '' },
    ];
    const record = recordOf(wanted);
    const names = (await recordedNames(port, record)) ?? (await writtenNames(wanted, record, imageId));
    const [shield = '', init = ''] = names.map((name) => `${ownFolder}/${name}`);
    return { mount: ownFilesMount, shield, init };
  };
  const writtenNames = async (wanted: readonly StoredFile[], record: string, imageId: string) => {
    const now = port.clock.now();
    const labels = ownershipLabels({ instance, role: 'container', createdAt: now });
    await port.createVolume(volume, { [ownedLabel]: '1', [filesLabel]: '' });
    const stored = await storedFiles(port, volume, wanted, { imageId, labels });
    const names = stored.map(({ name }) => name);
    if (stored.every(({ writtenAt }) => now - writtenAt > durableMs))
      await port.createVolume(record, { [ownedLabel]: '1', [filesLabel]: names.join(' ') });
    return names;
  };
  return (imageId) => once(volume, () => find(imageId));
}

/** The name of the volume that records where files with these contents are. */
function recordOf(files: readonly StoredFile[]): string {
  const hash = createHash('sha256');
  for (const { content } of files) hash.update(createHash('sha256').update(content).digest());
  return `${volume}-${hash.digest('hex').slice(0, 16)}`;
}

/** Undefined if there is no record, or if the volume that it is about was removed. */
async function recordedNames(port: EnginePort, record: string): Promise<string[] | undefined> {
  const volumes = await port.list('volume', [filesLabel]);
  const names = volumes.find(({ name }) => name === record)?.labels[filesLabel];
  if (names === undefined) return undefined;
  if (volumes.some(({ name }) => name === volume)) return names.split(' ');
  await port.remove('volume', record);
  return undefined;
}
