import type { Capabilities } from '../../port/capabilities.ts';
import { plainRuntimes } from '../../port/plain-runtimes.ts';
import type { ContainerSpec } from '../container-spec.ts';
import { type FilterKind, filterProfile, isFilterable } from './profile.ts';

type Machine = Pick<Capabilities, 'arch' | 'security' | 'takesFilters' | 'defaultRuntime'>;

/** The profile of our filter for a machine, as the engine takes it; undefined where none can be sent. */
export function filterFor(kind: FilterKind, machine: Machine): string | undefined {
  return whyNotSent(machine) === undefined ? filterProfile(kind, machine.arch) : undefined;
}

/** Why a container would run without our filter of system calls, or might; undefined where it has it. */
export function filterObstacle(
  { runtime }: Pick<ContainerSpec, 'runtime'>,
  machine: Machine,
): string | undefined {
  const name = runtime ?? machine.defaultRuntime;
  // Those that bring a kernel of their own leave the filter to it, and mostly it has none.
  return (
    whyNotSent(machine) ?? (plainRuntimes.includes(name) ? undefined : `the runtime ${name} may ignore one`)
  );
}

function whyNotSent({ arch, security, takesFilters }: Machine): string | undefined {
  if (!security.seccomp) return 'its kernel has no seccomp';
  if (!takesFilters) return 'Podman takes none by its Docker API';
  return isFilterable(arch) ? undefined : `there is none for the architecture ${arch}`;
}
