import { workspaceFiles } from '../../bounds/sandbox.ts';
import { startDeadline } from '../../deadline.ts';
import type { Manifest } from '../../engine/archive/manifest.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { Carry } from '../../validate/workspace-copy.ts';
import { type ArtifactCollection, artifactCollection, trajectoryArtifact } from '../artifacts.ts';
import { changedFiles, reportedFiles } from '../changed-files.ts';
import { FreshSandbox } from '../grading-sandboxes.ts';
import { protectedChanges, protectedPart, protectedState } from '../protected.ts';
import { sandboxPaths } from '../sandbox-paths.ts';
import { readWorkspace } from '../workspace.ts';
import { largestWorkspace } from './largest-workspace.ts';
import type { Found, Phase, PhaseInput } from './phase.ts';

/** Keeps what the harness made, before grading adds to it. */
export const collect: Phase = { name: 'collect', run };

async function run(input: PhaseInput): Promise<Found> {
  const { parts, signal, found } = input;
  const ms = workspaceFiles.time.reading;
  using deadline = startDeadline(parts.clock, ms, [signal], () => new Error(`no answer in ${ms} ms`));
  const { filesChanged, collection, carry, protectedChanged } = await read(input, deadline.signal);
  signal.throwIfAborted();
  const trajectory = await trajectoryArtifact(found.trajectory ?? [], parts.blobs);
  return {
    filesChanged,
    carry,
    protectedChanged,
    artifacts: [...(collection?.artifacts ?? []), trajectory],
    artifactsOmitted: [...(collection?.omitted ?? [])],
  };
}

interface Reading {
  filesChanged: string[];
  carry: Carry;
  protectedChanged: readonly string[];
  collection?: ArtifactCollection;
}

async function read(input: PhaseInput, deadline: AbortSignal): Promise<Reading> {
  const { spec, container } = input;
  try {
    // Many agents are only to answer.
    if (spec.artifacts.length === 0 && (await container.isUntouched(sandboxPaths.workspace, deadline)))
      return { filesChanged: [], carry: 'nothing', protectedChanged: [] };
    return (await readWhole(input, deadline)) ?? (await readLarge(input, deadline));
  } catch (error) {
    if (!(error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND')) throw error;
    // The harness removed its workspace. What is graded is that nothing is there, not that nobody could look.
    await input.container.put([{ path: sandboxPaths.workspace, folder: true }], '/', input.signal);
    return { filesChanged: ['.'], carry: 'all', protectedChanged: spec.protected.length > 0 ? ['.'] : [] };
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
  const filesChanged = changedFiles(before, after);
  const protectedChanged = protectedChanges(spec.protected, filesChanged);
  return { filesChanged, carry: carryOf(before, after), protectedChanged, collection };
}

function carryOf(before: Manifest, after: Manifest): Carry {
  return [...before.keys()].every((path) => after.has(path)) ? 'additions' : 'all';
}

async function readLarge(input: PhaseInput, deadline: AbortSignal): Promise<Reading> {
  const { spec, parts, container } = input;
  const filesChanged = await reportedFiles(container, deadline);
  const collection = artifactCollection(container, spec.artifacts, parts.blobs);
  await collection.readAll(deadline, await largestWorkspace(input));
  const protectedChanged = await protectedInLarge(input, deadline);
  return { filesChanged, carry: 'all', protectedChanged, collection };
}

/** The engine's list goes by sizes and times, which anybody can set: protected files are compared by content. */
async function protectedInLarge(input: PhaseInput, deadline: AbortSignal): Promise<string[]> {
  const { spec, container } = input;
  if (spec.protected.length === 0) return [];
  const before = await protectedBefore(input, deadline);
  const after = await protectedState(container, spec.protected, await largestWorkspace(input), deadline);
  return changedFiles(before, after);
}

/** The protected files as prepare made them. */
export async function protectedBefore(
  { spec, parts, before, imageId, ...input }: PhaseInput,
  deadline: AbortSignal,
): Promise<Manifest> {
  if (before !== 'large') return protectedPart(before, spec.protected);
  const key = JSON.stringify([imageId, spec.protected]);
  return parts.sandboxes.protectedFiles.of(key, async () => {
    using fresh = new FreshSandbox({ spec, parts, signal: input.signal });
    // What prepare made may be of any size.
    return await protectedState(await fresh.container(), spec.protected, Number.POSITIVE_INFINITY, deadline);
  });
}
