import type { ContainerSpec } from '../engine/container/container-spec.ts';
import type { Sandbox } from '../suite/plan.ts';
import { sandboxPaths } from './sandbox-paths.ts';

/**
 * A sandbox's container with the sandbox's limits. The caller adds the image.
 *
 * @param env what the host passes in
 */
export function containerSpec(
  sandbox: Sandbox,
  container: Pick<ContainerSpec, 'network' | 'labels'>,
  env: Record<string, string> = {},
): Omit<ContainerSpec, 'imageId'> {
  return {
    ...container,
    security: sandbox.security,
    memoryBytes: sandbox.memory,
    cpus: sandbox.cpus,
    diskBytes: sandbox.disk,
    pids: sandbox.pids,
    nofile: sandbox.nofile,
    filter: sandbox.seccomp,
    workingDir: sandboxPaths.workspace,
    env: { ...env, HOME: sandbox.user === undefined ? '/root' : '/tmp' },
    ...(sandbox.user !== undefined && { user: sandbox.user }),
    ...(sandbox.runtime !== undefined && { runtime: sandbox.runtime }),
  };
}

/**
 * The engine network that a sandbox gets. Models and named hosts are reached through the gateway, not through
 * a network.
 */
export function engineNetwork({ network }: Sandbox): 'none' | 'open' {
  return network === 'open' ? 'open' : 'none';
}
