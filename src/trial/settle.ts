import type { Container } from '../engine/container.ts';

/**
 * Makes sure that nothing runs in a sandbox any more. The engine's own list is asked first, which nothing inside can fake: mostly it is
 * empty, and one round trip is enough.
 */
export async function endProcesses(container: Container, signal: AbortSignal): Promise<void> {
  const running = await container.processes();
  if (running.length > 0) await container.killAll(signal);
}
