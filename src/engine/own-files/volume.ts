import { readFile } from 'node:fs/promises';
import { type StoredFile, storedFile } from '../archive/stored-file.ts';
import { ownershipLabels } from '../labels.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type { Mount } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';

/** The machines that there are files for, by the kernel's names. `npm run compile` makes the files. */
export const ownMachines = ['x86_64', 'aarch64'] as const;

/** The volume of the files. It stays, as the base image does. */
const volume = 'offsite-shield';

/** Where it is in a sandbox. Nothing else uses that folder. */
export const ownFolder = '/offsite-shield';

/** Offsite's own files in a sandbox, by their absolute paths. */
export interface OwnFiles {
  mount: Mount;
  /** The library that is compiled from `shield.c`. */
  shield: string;
  /** The program that is compiled from `init.c`. */
  init: string;
}

export interface OwnFilesVolume {
  /** For a container that lives as long as this process: nobody removes the volume meanwhile. */
  readonly held: readonly Mount[];
  /**
   * Fills the volume, the first time, with the help of this image: some round trips. Undefined for an unknown
   * machine.
   */
  files(imageId: string): Promise<OwnFiles | undefined>;
}

/**
 * Puts Offsite's own files into a volume of the engine, which sandboxes mount read-only. A step that can
 * write to a loaded library can take over the shells that report the steps, because they share its unchanged
 * pages with the file. So no process of a sandbox, root included, may be able to write to it.
 */
export function ownFilesVolume(
  port: EnginePort,
  instance: string,
  { arch }: Pick<Capabilities, 'arch'>,
): OwnFilesVolume {
  const mount: Mount = { volume, path: ownFolder, readOnly: true };
  if (!ownMachines.some((machine) => machine === arch)) return { held: [], files: async () => undefined };
  let filled: Promise<OwnFiles> | undefined;
  const fill = async (imageId: string): Promise<OwnFiles> => {
    const labels = ownershipLabels({ instance, role: 'container', createdAt: port.clock.now() });
    const stored = async (name: string, names: Pick<StoredFile, 'beginning' | 'ending'>) => {
      const content = await readFile(new URL(`./${arch}/${name}`, import.meta.url));
      const file = { ...names, content, mode: 0o755 };
      return `${ownFolder}/${await storedFile(port, volume, file, { imageId, labels })}`;
    };
    const [shield, init] = await Promise.all([
      stored('shield.so', { ending: '.so' }),
      // What people see of it in lists of processes.
      stored('init', { beginning: 'offsite-init-', ending: '' }),
    ]);
    return { mount, shield, init };
  };
  return {
    held: [mount],
    async files(imageId) {
      filled ??= fill(imageId).catch((error: unknown) => {
        filled = undefined;
        throw error;
      });
      return filled;
    },
  };
}
