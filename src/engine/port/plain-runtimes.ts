/**
 * Runtimes that run a container's processes directly on the machine's kernel. Others, such as gVisor's, may
 * not.
 */
export const plainRuntimes: readonly string[] = ['runc', 'io.containerd.runc.v2', 'crun'];
