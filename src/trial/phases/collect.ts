import { startDeadline } from '../../engine/deadline.ts';
import { collectArtifacts, trajectoryArtifact } from '../artifacts.ts';
import { changedFiles, restoreWorkspace } from '../changed-files.ts';
import type { TrialResult } from '../result.ts';
import type { Phase, PhaseInput } from './phase.ts';

/** Milliseconds for reading the workspace. An engine gives some 150 MB a second, so that this is far more than artifacts need. */
const readingMs = 5 * 60_000;

/** Keeps what the harness made, before grading adds to it. */
export const collect: Phase = { name: 'collect', run };

async function run({ spec, parts, container, signal, found }: PhaseInput): Promise<Partial<TrialResult>> {
  const { blobs, clock } = parts;
  const changes = await container.changes();
  const filesChanged = changedFiles(changes);
  await restoreWorkspace(container, changes, signal);
  using deadline = startDeadline(clock, readingMs, signal);
  const { artifacts, omitted } = await collectArtifacts(container, spec.artifacts, blobs, deadline.signal);
  signal.throwIfAborted();
  const trajectory = await trajectoryArtifact(found.trajectory ?? [], blobs);
  return { filesChanged, artifacts: [...artifacts, trajectory], artifactsOmitted: omitted };
}
