import type { Config } from '../suite/config-file.ts';

/** What sandboxes of one runtime have in common. */
export interface SandboxRuntime {
  /** As a sandbox names it; undefined for the engine's default. */
  runtime: string | undefined;
  /** Whether a configured sandbox of it may lack Offsite's filter of system calls. */
  mayLackFilter: boolean;
}

export interface UsedRuntime extends SandboxRuntime {
  /** Its name, also of the engine's default. */
  name: string;
}

/** The runtimes that sandboxes use on an engine with this default, which comes first if it is one of them. */
export function usedRuntimes(
  configured: Record<string, Pick<Config['sandboxes'][string], 'runtime' | 'seccomp'>>,
  defaultRuntime: string,
): UsedRuntime[] {
  // There is a sandbox `local` without an entry.
  const sandboxes = Object.values({ local: { runtime: undefined, seccomp: 'required' }, ...configured });
  const names = new Set(sandboxes.map(({ runtime = defaultRuntime }) => runtime));
  return [...names]
    .sort((one, other) => Number(other === defaultRuntime) - Number(one === defaultRuntime))
    .map((name) => ({
      name,
      runtime: name === defaultRuntime ? undefined : name,
      mayLackFilter: sandboxes.some(
        ({ runtime = defaultRuntime, seccomp }) => runtime === name && seccomp === 'if-available',
      ),
    }));
}
