import { putEntries } from '../archive/put.ts';
import type { EnginePort } from '../port/engine-port.ts';
import type { ContainerSpec } from './container-spec.ts';
import { isRoot } from './is-root.ts';

/** The name that every container has. */
export const hostName = 'sandbox';

const lines = [`127.0.0.1 localhost ${hostName}`, `::1 localhost ip6-localhost ip6-loopback ${hostName}`];

/**
 * Names the loopback's addresses. The engine does so where it sets up a network; a container without one
 * finds an empty file. Where init is root, it writes the file, which costs nothing.
 */
export const writeHosts = `[ -s /etc/hosts ] || printf '%s\\n' ${lines.map((line) => `'${line}'`).join(' ')} > /etc/hosts`;

/**
 * In a network of the engine's, the own name stands for an address that is gone once the container is taken
 * off it. The first line with a name counts.
 */
export const ownAddress = { [hostName]: '127.0.0.1' };

/**
 * Gives a container that is not started yet the file that its init cannot write. One round trip where that is
 * so.
 */
export type FillHosts = (id: string, spec: ContainerSpec, signal?: AbortSignal) => Promise<void>;

/**
 * Asks for the user of each image once: one round trip for an image, where a container of it names no user.
 */
export function fillHosts(port: EnginePort): FillHosts {
  const users = new Map<string, string>();
  const userOf = async (imageId: string, signal?: AbortSignal) => {
    const user = users.get(imageId) ?? (await port.images.find(imageId, signal))?.user ?? '';
    users.set(imageId, user);
    return user;
  };
  return async (id, { network, program, user, imageId }, signal) => {
    // With a network the engine writes it; a program of ours asks for no names.
    if (network === 'open' || program !== undefined) return;
    if (isRoot(user ?? (await userOf(imageId, signal)))) return;
    await putEntries({ port, id }, [{ path: 'etc/hosts', content: `${lines.join('\n')}\n` }], '/', signal);
  };
}
