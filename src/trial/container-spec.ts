import type { ContainerSpec } from '../engine/container/container-spec.ts';
import type { Sandbox } from '../suite/plan.ts';
import { sandboxPaths } from './sandbox-paths.ts';

/** Where and as whom the commands of a sandbox run, and with which variables besides those of the host. */
export interface Place {
  /** Absolute; the folder of the workspace. */
  workspace: string;
  /** Default: root. */
  user: string | undefined;
  env: Readonly<Record<string, string>>;
}

/** The place in an image that has no say in it. */
export const usualPlace: Place = { workspace: sandboxPaths.workspace, user: undefined, env: {} };

/**
 * A sandbox's container with the sandbox's limits. The caller adds the image.
 *
 * @param passed what the host passes in
 */
export function containerSpec(
  sandbox: Sandbox,
  { workspace, user = sandbox.user, env }: Place,
  container: Pick<ContainerSpec, 'network' | 'labels'>,
  passed: Record<string, string> = {},
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
    workingDir: workspace,
    env: { ...passed, ...env },
    ...(user !== undefined && { user }),
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
