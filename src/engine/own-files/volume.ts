import { type StoredFile, storedFile } from '../archive/stored-file.ts';
import { hostsText } from '../container/hosts-file.ts';
import { ownershipLabels } from '../labels.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type { Mount } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { firstProcess } from './first-process.ts';
import { memoryKills } from './memory-kills.ts';
import { shieldLibrary } from './shield.ts';

/** The volume of the files. It stays, as the base image does. */
const volume = 'offsite-shield';

/** Where it is in a sandbox. Nothing else uses that folder. */
export const ownFolder = '/offsite-shield';

/** Offsite's own files in a sandbox, by their absolute paths. */
export interface OwnFiles {
  mount: Mount;
  /** See {@link shieldLibrary}. */
  shield: string;
  /** See {@link firstProcess}. */
  firstProcess: string;
  /** See {@link memoryKills}. */
  memoryKills: string;
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
  const [library, program, counter] = [shieldLibrary(arch), firstProcess(arch, hostsText), memoryKills(arch)];
  if (library === undefined || program === undefined || counter === undefined)
    return { held: [], files: async () => undefined };
  let filled: Promise<OwnFiles> | undefined;
  const fill = async (imageId: string): Promise<OwnFiles> => {
    const labels = ownershipLabels({ instance, role: 'container', createdAt: port.clock.now() });
    const stored = async (file: Omit<StoredFile, 'mode'>) =>
      `${ownFolder}/${await storedFile(port, volume, { ...file, mode: 0o755 }, { imageId, labels })}`;
    const [shield, first, kills] = await Promise.all([
      stored({ content: library, ending: '.so' }),
      // What people see of it in lists of processes.
      stored({ content: program, beginning: 'offsite-init-', ending: '' }),
      stored({ content: counter, beginning: 'offsite-memory-kills-', ending: '' }),
    ]);
    return { mount, shield, firstProcess: first, memoryKills: kills };
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
