import type { Capabilities } from './capabilities.ts';

/**
 * Runtimes that run a container's processes directly on the machine's kernel. Others, such as gVisor's, may
 * not.
 */
export const plainRuntimes: readonly string[] = ['runc', 'io.containerd.runc.v2', 'crun'];

/**
 * The runtime of containers that run only Offsite's own programs, undefined for the engine's default. They
 * take a plain one if the engine has one: the limits of these containers leave no room for another kernel.
 */
export function ownProgramsRuntime({
  runtimes,
  defaultRuntime,
}: Pick<Capabilities, 'runtimes' | 'defaultRuntime'>): string | undefined {
  if (plainRuntimes.includes(defaultRuntime)) return undefined;
  return plainRuntimes.find((name) => runtimes.includes(name));
}
