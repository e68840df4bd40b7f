import type { HostFacts, RunningContainer } from './running-container.ts';

/** One round trip the first time, after a restart, and before the container runs. */
export async function hostFactsOf(container: RunningContainer, signal?: AbortSignal): Promise<HostFacts> {
  if (container.hostFacts) return container.hostFacts;
  const facts = await container.port.containers.state(container.id, signal);
  if (facts.initPid > 0) container.hostFacts = facts;
  return facts;
}
