/**
 * Runtimes that run a container's processes on the machine's own kernel, as they are told to; others, such as
 * gVisor's, may not.
 */
export const plainRuntimes: readonly string[] = ['runc', 'io.containerd.runc.v2', 'crun'];
