import type { Sandboxes } from '../trial/sandboxes.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { Admission } from './admission.ts';

/** Resolves when what a trial's sandbox starts from is there, or cannot be made. Rejects only where the signal aborts. */
export async function buildImage(
  spec: TrialSpec,
  sandboxes: Sandboxes,
  admission: Admission,
  signal: AbortSignal,
): Promise<void> {
  try {
    using _place = await admission.builds.enter(signal);
    await sandboxes.prepare(spec, signal);
  } catch {
    // Each trial's own attempt meets the same, and knows whose trouble it is.
    signal.throwIfAborted();
  }
}
