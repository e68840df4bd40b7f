import type { HostFacts, RunningContainer } from './running-container.ts';

/** One round trip the first time, and after a restart. */
export async function hostFactsOf(container: RunningContainer, signal?: AbortSignal): Promise<HostFacts> {
  container.hostFacts ??= await container.port.containers.state(container.id, signal);
  return container.hostFacts;
}
