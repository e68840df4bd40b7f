import { plainRuntimes } from './plain-runtimes.ts';
import type { HostFacts, RunningContainer } from './running-container.ts';

interface Inspected {
  State: { Pid: number };
  GraphDriver?: { Name: string; Data?: { UpperDir?: string } | null } | null;
  HostConfig?: { Runtime?: string };
  Mounts?: unknown[] | null;
}

/** One round trip the first time, and after a restart. */
export async function hostFactsOf(container: RunningContainer, signal?: AbortSignal): Promise<HostFacts> {
  const { client, id } = container;
  if (container.hostFacts) return container.hostFacts;
  const { State, GraphDriver, HostConfig, Mounts } = await client.call(
    'looking at a container',
    (abortSignal) =>
      client.dial<Inspected>({
        method: 'GET',
        path: `/containers/${id}/json?`,
        expected: [200],
        abortSignal,
      }),
    { signal },
  );
  const isInLayer =
    GraphDriver?.Name === 'overlay2' &&
    // They let the kernel write into the layer; others may keep what is written elsewhere.
    plainRuntimes.includes(HostConfig?.Runtime ?? '') &&
    // An image may declare volumes.
    (Mounts ?? []).length === 0;
  container.hostFacts = { initPid: State.Pid, layer: isInLayer ? GraphDriver.Data?.UpperDir : undefined };
  return container.hostFacts;
}
