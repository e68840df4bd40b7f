import type { DockerClient } from '../docker/client.ts';
import { readFacts } from '../docker/facts.ts';
import type { Capabilities } from '../port/capabilities.ts';
import { machineName } from './names.ts';

interface Info {
  host: { cgroupControllers?: string[] | null; security?: { rootless?: boolean } };
}

/** Two round trips: Podman's Docker API reports the limits of the machine, even if containers get none. */
export async function readPodmanFacts(
  { docker, native }: { docker: DockerClient; native: DockerClient },
  signal?: AbortSignal,
): Promise<Capabilities> {
  const request = { method: 'GET' as const, path: '/libpod/info' };
  const [facts, { host }] = await Promise.all([
    readFacts(docker, signal),
    native.ask<Info>('asking the engine what it can do', request, { signal }),
  ]);
  const rootless = host.security?.rootless ?? false;
  const controllers = host.cgroupControllers ?? [];
  // Without root, version 1 of control groups gives no limits.
  const limits = rootless && facts.cgroupVersion === '1' ? [] : controllers;
  return {
    ...facts,
    product: 'Podman',
    // Podman lists the runtimes that its configuration names, even missing ones, and runs all containers with
    // one of them.
    runtimes: [facts.defaultRuntime],
    arch: machineName(facts.arch),
    takesFilters: true,
    recordsNaming: false,
    reportsEvents: false,
    security: { ...facts.security, rootless },
    limits: {
      memory: limits.includes('memory'),
      // For swap, Podman only looks for the kernel's file of version 1. In version 2 the memory controller
      // limits swap too.
      swap: limits.includes('memory') && (facts.cgroupVersion === '2' || facts.limits.swap),
      pids: limits.includes('pids'),
      cpu: limits.includes('cpu'),
    },
  };
}
