import { putEntries } from '../archive/put.ts';
import type { EngineClient } from '../connection/engine-client.ts';
import type { ContainerSpec } from './container-spec.ts';
import { isRoot } from './is-root.ts';

/** The name that every container has. */
export const hostName = 'sandbox';

const lines = [`127.0.0.1 localhost ${hostName}`, `::1 localhost ip6-localhost ip6-loopback ${hostName}`];

/**
 * Names the loopback's addresses. The engine does so where it sets up a network; a container without one finds an empty file. Where init
 * is root, it writes the file, which costs nothing.
 */
export const writeHosts = `[ -s /etc/hosts ] || printf '%s\\n' ${lines.map((line) => `'${line}'`).join(' ')} > /etc/hosts`;

/**
 * In a network of the engine's, the own name stands for an address that is gone once the container is taken off it. A file's first line with
 * a name counts.
 */
export const extraHosts: readonly string[] = [`${hostName}:127.0.0.1`];

/** Gives a created container, which is not started yet, the file that its init cannot write. One round trip where that is so. */
export type FillHosts = (id: string, spec: ContainerSpec, signal?: AbortSignal) => Promise<void>;

/** Asks for the user of each image once: one round trip for an image, where a container of it names no user. */
export function fillHosts(client: EngineClient): FillHosts {
  const users = new Map<string, string>();
  const userOf = async (imageId: string, signal?: AbortSignal) => {
    const user = users.get(imageId) ?? (await imageUser(client, imageId, signal));
    users.set(imageId, user);
    return user;
  };
  return async (id, { network, program, user, imageId }, signal) => {
    // With a network the engine writes it; a program of ours asks for no names.
    if (network === 'open' || program !== undefined) return;
    if (isRoot(user ?? (await userOf(imageId, signal)))) return;
    await putEntries({ client, id }, [{ path: 'etc/hosts', content: `${lines.join('\n')}\n` }], '/', signal);
  };
}

/** The user that an image names; empty for root. */
async function imageUser(client: EngineClient, id: string, signal?: AbortSignal): Promise<string> {
  const { Config } = await client.call(
    "asking for an image's user",
    (abortSignal) =>
      client.dial<{ Config?: { User?: string } | null }>({
        method: 'GET',
        path: `/images/${encodeURI(id)}/json`,
        expected: [200],
        abortSignal,
      }),
    { signal },
  );
  return Config?.User ?? '';
}
