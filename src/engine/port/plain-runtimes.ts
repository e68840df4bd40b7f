import type { Capabilities } from './capabilities.ts';

/**
 * Runtimes that run a container's processes directly on the machine's kernel. Others, such as gVisor's, may
 * not.
 */
export const plainRuntimes: readonly string[] = ['runc', 'io.containerd.runc.v2', 'crun'];

/**
 * A plain runtime of an engine whose default is not plain; undefined if it has none, or its default is.
 * Containers that run only Offsite's own programs take it: their limits leave no room for another kernel.
 */
export function otherPlainRuntime({
  runtimes,
  defaultRuntime,
}: Pick<Capabilities, 'runtimes' | 'defaultRuntime'>): string | undefined {
  if (plainRuntimes.includes(defaultRuntime)) return undefined;
  return plainRuntimes.find((name) => runtimes.includes(name));
}
