import { randomBytes } from 'node:crypto';
import { storedFile } from '../archive/stored-file.ts';
import { ownershipLabels } from '../labels.ts';
import type { Capabilities } from '../port/capabilities.ts';
import type { Mount } from '../port/containers.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { shieldFolder, shieldLibrary } from './shield.ts';

/** The volume of the library. It stays, as the base image does. */
const volume = 'offsite-shield';
const folder = '/shield';

/** The library in one container. */
export interface ShieldMount {
  mount: Mount;
  /** Its absolute path in the container, once it is there. Rejects if the engine fails. */
  library(): Promise<string>;
}

export interface ShieldVolume {
  /** For a container that lives as long as this process: nobody removes the volume meanwhile. */
  readonly held: readonly Mount[];
  /** For a new container of this image. Undefined for an unknown machine. */
  mountFor(imageId: string): ShieldMount | undefined;
}

/**
 * Puts the library of `shield.ts` into a volume of the engine, which sandboxes mount read-only. A step that
 * can write to a loaded library can take over the shells that report the steps, because they share its
 * unchanged pages with the file. So no process of a sandbox, root included, may be able to write to it.
 */
export function shieldVolume(
  port: EnginePort,
  instance: string,
  { arch }: Pick<Capabilities, 'arch'>,
): ShieldVolume {
  const content = shieldLibrary(arch);
  let filled: Promise<string> | undefined;
  const fill = (content: Buffer, imageId: string) => {
    const labels = ownershipLabels({ instance, role: 'container', createdAt: port.clock.now() });
    return storedFile(port, volume, { content, ending: '.so', mode: 0o755 }, { imageId, labels });
  };
  return {
    held: content === undefined ? [] : [{ volume, path: folder, readOnly: true }],
    mountFor(imageId) {
      if (content === undefined) return undefined;
      filled ??= fill(content, imageId).catch((error: unknown) => {
        filled = undefined;
        throw error;
      });
      const name = filled;
      name.catch(() => undefined);
      // The name is random, so that nothing can have been put there in advance.
      const path = `${shieldFolder}/${randomBytes(8).toString('hex')}`;
      return { mount: { volume, path, readOnly: true }, library: async () => `${path}/${await name}` };
    },
  };
}
