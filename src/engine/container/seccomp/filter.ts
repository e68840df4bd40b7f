import type { Capabilities } from '../../port/capabilities.ts';
import { plainRuntimes } from '../../port/plain-runtimes.ts';
import type { ContainerSpec } from '../container-spec.ts';
import { type FilterKind, filterProfile, isFilterable } from './profile.ts';

type Machine = Pick<Capabilities, 'arch' | 'security' | 'takesFilters' | 'defaultRuntime'>;

/** The profile of Offsite's filter for a machine, in the engine's form; undefined if none can be sent. */
export function filterFor(kind: FilterKind, machine: Machine): string | undefined {
  return whyNotSent(machine) === undefined ? filterProfile(kind, machine.arch) : undefined;
}

/**
 * Why a container does or may run without Offsite's filter of system calls; undefined if it has the filter.
 */
export function filterObstacle(
  { runtime }: Pick<ContainerSpec, 'runtime'>,
  machine: Machine,
): string | undefined {
  const name = runtime ?? machine.defaultRuntime;
  // Runtimes with their own kernel leave the filter to that kernel, which usually has none.
  return (
    whyNotSent(machine) ?? (plainRuntimes.includes(name) ? undefined : `the runtime ${name} may ignore one`)
  );
}

function whyNotSent({ arch, security, takesFilters }: Machine): string | undefined {
  if (!security.seccomp) return 'its kernel has no seccomp';
  if (!takesFilters) return 'the engine does not accept any from its clients';
  return isFilterable(arch) ? undefined : `there is none for the architecture ${arch}`;
}
