import type { Sandboxes } from '../trial/sandboxes.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { Gate } from './gate.ts';

export interface ImageBuilding {
  sandboxes: Pick<Sandboxes, 'prepare'>;
  /** How many are built at a time: what is there already waits for none. */
  gate: Gate;
  signal: AbortSignal;
  /** Told when it is not there yet, and is going to be built. */
  onBuild?(): void;
}

/** Resolves when what a trial's sandbox starts from is there, or cannot be made. Rejects only where the signal aborts. */
export async function buildImage(
  spec: TrialSpec,
  { sandboxes, gate, signal, onBuild }: ImageBuilding,
): Promise<void> {
  const building = () => {
    onBuild?.();
    return gate.enter(signal);
  };
  try {
    await sandboxes.prepare(spec, signal, { building });
  } catch {
    // Each trial's own attempt meets the same, and knows whose trouble it is.
    signal.throwIfAborted();
  }
}
