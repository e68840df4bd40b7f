import type { ContainerSpec } from '../engine/container/container-spec.ts';
import type { Sandbox } from '../suite/plan.ts';
import { sandboxPaths } from './sandbox-paths.ts';

/** Folder, user and variables of the commands of a sandbox. The host's variables are added. */
export interface CommandContext {
  /** Absolute; the folder of the workspace. */
  workspace: string;
  /** Default: root. */
  user: string | undefined;
  env: Readonly<Record<string, string>>;
}

/** The context of commands in an image that sets none itself. */
export const defaultContext: CommandContext = { workspace: sandboxPaths.workspace, user: undefined, env: {} };

/**
 * A sandbox's container with the sandbox's limits. The caller adds the image.
 *
 * @param passed what the host passes in
 */
export function containerSpec(
  sandbox: Sandbox,
  { workspace, user = sandbox.user, env }: CommandContext,
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
