import { putEntries } from '../archive/write-archive.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { type ContainerSpec, isRoot } from './container-spec.ts';

/** The host name of every container. */
export const hostName = 'sandbox';

const lines = [`127.0.0.1 localhost ${hostName}`, `::1 localhost ip6-localhost ip6-loopback ${hostName}`];

/**
 * The names of the loopback addresses. The engine writes them if it sets up a network; without a network,
 * `/etc/hosts` is empty. A first process that is root writes the file, which needs no round trip. Podman
 * makes the empty file readable for root alone.
 */
export const hostsText = lines.map((line) => `${line}\n`).join('');

const quoted = lines.map((line) => `'${line}'`).join(' ');

/** The same as shell code, for a machine that Offsite has no program for. */
export const writeHosts = `[ -s /etc/hosts ] || { printf '%s\\n' ${quoted} > /etc/hosts; chmod 644 /etc/hosts; }`;

/**
 * In a network of the engine, the container's own name resolves to an address that is gone once the container
 * is disconnected. This entry comes first in `/etc/hosts`, and the first line with a name wins.
 */
export const ownAddress = { [hostName]: '127.0.0.1' };

/**
 * Puts the hosts file into a container that is not started yet, if its init cannot write it. One round trip
 * in that case.
 */
export type FillHosts = (id: string, spec: ContainerSpec, signal?: AbortSignal) => Promise<void>;

/** Asks for the user of each image once: one round trip per image, if a container of it names no user. */
export function fillHosts(port: EnginePort): FillHosts {
  const users = new Map<string, string>();
  const userOf = async (imageId: string, signal?: AbortSignal) => {
    const user = users.get(imageId) ?? (await port.images.find(imageId, signal))?.user ?? '';
    users.set(imageId, user);
    return user;
  };
  return async (id, { network, program, user, imageId, hosts = {} }, signal) => {
    // With a network the engine writes the file; Offsite's own programs resolve no names.
    if (network === 'open' || program !== undefined) return;
    const named = Object.entries(hosts).map(([name, address]) => `${address} ${name}`);
    if (named.length === 0 && isRoot(user ?? (await userOf(imageId, signal)))) return;
    const content = [...lines, ...named].map((line) => `${line}\n`).join('');
    await putEntries({ port, id }, [{ path: 'etc/hosts', content }], '/', signal);
  };
}
