import type { ContainerSpec } from '../engine/container/container-spec.ts';
import type { Sandbox } from '../suite/plan.ts';
import { places } from './places.ts';

/** The container of a sandbox, held to the sandbox's limits; its image is the caller's to add. */
export function containerSpec(
  sandbox: Sandbox,
  container: Pick<ContainerSpec, 'network' | 'labels'>,
): Omit<ContainerSpec, 'imageId'> {
  return {
    ...container,
    security: sandbox.security,
    memoryBytes: sandbox.memory,
    cpus: sandbox.cpus,
    pids: sandbox.pids,
    nofile: sandbox.nofile,
    workingDir: places.workspace,
    ...(sandbox.runtime !== undefined && { runtime: sandbox.runtime }),
  };
}
