import { startDeadline } from '../../engine/deadline.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { type ArtifactCollection, artifactCollection, trajectoryArtifact } from '../artifacts.ts';
import { changedFiles, changedFilesByEngine } from '../changed-files.ts';
import { places } from '../places.ts';
import type { TrialResult } from '../result.ts';
import { readWorkspace } from '../workspace.ts';
import type { Phase, PhaseInput } from './phase.ts';

/** Milliseconds for reading the workspace. An engine gives some 150 MB a second, so that this is far more than artifacts need. */
const readingMs = 5 * 60_000;

/** Keeps what the harness made, before grading adds to it. */
export const collect: Phase = { name: 'collect', run };

async function run(input: PhaseInput): Promise<Partial<TrialResult>> {
  const { parts, signal, found } = input;
  using deadline = startDeadline(parts.clock, readingMs, signal);
  const { filesChanged, collection } = await read(input, deadline.signal);
  signal.throwIfAborted();
  const trajectory = await trajectoryArtifact(found.trajectory ?? [], parts.blobs);
  return {
    filesChanged,
    artifacts: [...(collection?.artifacts ?? []), trajectory],
    artifactsOmitted: [...(collection?.omitted ?? [])],
  };
}

interface Reading {
  filesChanged: string[];
  collection?: ArtifactCollection;
}

async function read(input: PhaseInput, deadline: AbortSignal): Promise<Reading> {
  const { spec, container } = input;
  try {
    // Many agents are only to answer.
    if (spec.artifacts.length === 0 && (await container.isUntouched(places.workspace, deadline)))
      return { filesChanged: [] };
    return (await readWhole(input, deadline)) ?? (await readLarge(input, deadline));
  } catch (error) {
    if (!(error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND')) throw error;
    // The harness removed its workspace. What is graded is that nothing is there, not that nobody could look.
    await input.container.put([{ path: places.workspace, folder: true }], '/', input.signal);
    return { filesChanged: ['.'] };
  }
}

/** Changes and artifacts in one pass over the workspace; undefined where it is too large for that. */
async function readWhole(
  { spec, parts, container, before }: PhaseInput,
  deadline: AbortSignal,
): Promise<Reading | undefined> {
  if (before === 'large') return undefined;
  const collection = artifactCollection(container, spec.artifacts, parts.blobs);
  const after = await readWorkspace(container, deadline, (entry) => collection.visit(entry));
  if (after === 'large') return undefined;
  await collection.finish(deadline);
  return { filesChanged: changedFiles(before, after), collection };
}

async function readLarge({ spec, parts, container }: PhaseInput, deadline: AbortSignal): Promise<Reading> {
  const filesChanged = changedFilesByEngine(await container.changes());
  const collection = artifactCollection(container, spec.artifacts, parts.blobs);
  await collection.readAll(deadline);
  return { filesChanged, collection };
}
