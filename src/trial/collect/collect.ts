import type { Clock } from '../../base/clock.ts';
import { startDeadline } from '../../base/deadline.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { printedText } from '../../bounds/anyone.ts';
import { diskMeasure, workspaceFiles } from '../../bounds/sandbox.ts';
import { pathMax } from '../../engine/archive/entries.ts';
import { ArchiveCopy } from '../../engine/archive/read.ts';
import type { Manifest } from '../../engine/archive/stored-file.ts';
import type { Container } from '../../engine/container.ts';
import { howItEnded, isSuccess } from '../../engine/exec/exec-request.ts';
import type { FileChange } from '../../record/files.ts';
import type { CollectCommand } from '../../suite/case-tests.ts';
import type { Carry } from '../../validate/workspace-copy.ts';
import { FreshSandbox, type OpenRecord, type Phase, type TrialSandbox } from '../phase.ts';
import { gradingEnvironment } from '../prepare/environment.ts';
import type { TrialSpec } from '../spec.ts';
import { ArtifactCollection, trajectoryArtifact } from './artifacts.ts';
import { needsWholeSandbox } from './keep-left.ts';
import { ChangedTexts, changedFiles, readWorkspace, reportedFiles } from './read-workspace.ts';
import {
  cachesAmong,
  protectedChanges,
  protectedPart,
  protectedState,
  protectionOf,
  shownPaths,
  unmatchedGlobs,
} from './system-changes.ts';

/** Collects the harness's changes and artifacts before grading adds to them. */
export const collect: Phase = { name: 'collect', run };

async function run(spec: TrialSpec, sandbox: TrialSandbox, found: OpenRecord): Promise<OpenRecord> {
  const { parts, signal } = sandbox;
  const ms = workspaceFiles.time.reading;
  // For a later grading, these commands ran before the state was kept.
  const commands = sandbox.restored ? [] : (spec.tests?.collect ?? []);
  const notes = await runCollectCommands(sandbox.container, commands, parts.clock, signal);
  using deadline = startDeadline(parts.clock, ms, signal);
  const { filesChanged, changes, collection, carry, packed, protectedChanged, paths } = await read(
    spec,
    sandbox,
    found,
    deadline.signal,
  );
  signal.throwIfAborted();
  const at = parts.clock.now();
  const texts = [
    ...cacheNote(spec, filesChanged),
    ...(await unmatchedNote(spec, sandbox)),
    ...deepNote(sandbox, paths ?? filesChanged),
  ];
  const newNotes = [...notes, ...texts.map((text) => ({ kind: 'note' as const, at, text }))];
  const trajectory = await trajectoryArtifact(found.trajectory ?? [], parts.blobs);
  return {
    ...(newNotes.length > 0 && { events: [...(found.events ?? []), ...newNotes] }),
    filesChanged,
    changes,
    carry,
    packed,
    protectedChanged,
    artifacts: [...(collection?.artifacts ?? []), trajectory],
    artifactsOmitted: [...(collection?.omitted ?? [])],
  };
}

/** Notes that protected folders have caches that do not count. */
function cacheNote(spec: TrialSpec, filesChanged: readonly string[]): string[] {
  const caches = cachesAmong(protectionOf(spec), filesChanged);
  if (caches.length === 0) return [];
  const left = spec.verifyPlace.in === 'fresh' ? ', and are left out of grading' : '';
  return [`caches of tools among the protected files do not count${left}: ${shownPaths(caches)}`];
}

/**
 * Notes which patterns match no file of the prepared workspace. Such a pattern may be misspelled, or name
 * files that must not be added.
 */
async function unmatchedNote(spec: TrialSpec, { prepared }: TrialSandbox): Promise<string[]> {
  if (spec.protected.length === 0) return [];
  const { state } = await prepared();
  const unmatched = state === 'large' ? [] : unmatchedGlobs(spec.protected, state.keys());
  if (unmatched.length === 0) return [];
  return [`protected: no file of the prepared workspace matches ${unmatched.join(', ')}`];
}

/**
 * Notes paths so long that those below them may be longer than a system call takes: engines leave these out
 * of their archives without a word.
 */
function deepNote({ container }: TrialSandbox, paths: Iterable<string>): string[] {
  let longest = 0;
  for (const path of paths) longest = Math.max(longest, Buffer.byteLength(path));
  if (container.workingDir.length + longest < deepPath) return [];
  return [
    `the workspace has a path of ${longest} bytes: what is beyond ${pathMax} may be missing in a copy that is graded`,
  ];
}

/** In bytes. The list of a large workspace ends a few names before the longest path. */
const deepPath = pathMax - 4 * 255;

interface Reading {
  filesChanged: string[];
  changes?: FileChange[] | undefined;
  carry: Carry;
  packed?: ArchiveCopy | undefined;
  protectedChanged: readonly string[];
  /** All paths of the workspace, if they are known. */
  paths?: Iterable<string>;
  collection?: ArtifactCollection;
}

async function read(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  found: OpenRecord,
  deadline: AbortSignal,
): Promise<Reading> {
  const { container, restored } = sandbox;
  try {
    // Many agents only answer and change no files. A restored sandbox looks untouched, because its image
    // already has what changed.
    if (
      !restored &&
      spec.artifacts.length === 0 &&
      (await container.isUntouched(container.workingDir, deadline))
    )
      return { filesChanged: [], changes: [], carry: 'nothing', protectedChanged: [] };
    return (await readWhole(spec, sandbox, deadline)) ?? (await readLarge(spec, sandbox, found, deadline));
  } catch (error) {
    if (!(error instanceof OffsiteError && error.code === 'ENGINE_NOT_FOUND')) throw error;
    // The harness removed its workspace. Create an empty one, so that its absence is graded and is not an
    // error.
    await container.put([{ path: container.workingDir, folder: true }], '/', sandbox.signal);
    return { filesChanged: ['.'], carry: 'all', protectedChanged: spec.protected.length > 0 ? ['.'] : [] };
  }
}

/**
 * Reads changes and artifacts in one pass over the workspace. Undefined if the workspace is too large for
 * that.
 */
async function readWhole(
  spec: TrialSpec,
  { parts, container, prepared }: TrialSandbox,
  deadline: AbortSignal,
): Promise<Reading | undefined> {
  const { state: before } = await prepared();
  if (before === 'large') return undefined;
  const collection = new ArtifactCollection(container, spec, parts.blobs);
  const texts = new ChangedTexts(before, parts.sandboxes.texts);
  const visitor = texts.visitor((entry) => collection.visit(entry));
  const packed = needsWholeSandbox(spec) ? undefined : new ArchiveCopy(workspaceFiles.bytes.again);
  const after = await readWorkspace(container, deadline, visitor, packed);
  if (after === 'large') return undefined;
  await collection.finish(deadline);
  const filesChanged = changedFiles(before, after);
  const protectedChanged = protectedChanges(protectionOf(spec), filesChanged);
  const changes = await texts.changes(filesChanged, after, parts.blobs);
  const isFolder = after.get('')?.type === 'folder';
  return {
    filesChanged,
    changes,
    carry: carryOf(before, after),
    protectedChanged,
    collection,
    packed: isFolder ? packed : undefined,
    paths: after.keys(),
  };
}

function carryOf(before: Manifest, after: Manifest): Carry {
  return [...before.keys()].every((path) => after.has(path)) ? 'additions' : 'all';
}

async function readLarge(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  found: OpenRecord,
  deadline: AbortSignal,
): Promise<Reading> {
  const { parts, container, restored } = sandbox;
  const filesChanged = restored ? [...restored.filesChanged] : await reportedFiles(container, deadline);
  const collection = new ArtifactCollection(container, spec, parts.blobs);
  const largest = await largestWorkspace(spec, sandbox, found);
  await collection.readAll(deadline, largest);
  const protectedChanged = await protectedInLarge(spec, sandbox, largest, deadline);
  return { filesChanged, carry: 'all', protectedChanged, collection };
}

/**
 * The engine's list relies on sizes and times, which any program can set. So protected files are compared by
 * content.
 */
async function protectedInLarge(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  maxBytes: number,
  deadline: AbortSignal,
): Promise<string[]> {
  if (spec.protected.length === 0) return [];
  const before = await protectedBefore(spec, sandbox, deadline);
  const after = await protectedState(sandbox.container, protectionOf(spec), maxBytes, deadline);
  return changedFiles(before, after);
}

/** The protected files as prepare left them. */
export async function protectedBefore(
  spec: TrialSpec,
  { whole, parts, prepared, imageId, signal, services }: TrialSandbox,
  deadline: AbortSignal,
): Promise<Manifest> {
  const { state } = await prepared();
  if (state !== 'large') return protectedPart(state, protectionOf(spec));
  const key = JSON.stringify([imageId, spec.protected, spec.verifyPlace.in]);
  return parts.sandboxes.protectedFiles.of(key, deadline, async () => {
    using fresh = new FreshSandbox({ spec: whole, parts, signal, services });
    // Prepare may make files of any size.
    const container = await fresh.container();
    return await protectedState(container, protectionOf(spec), Number.POSITIVE_INFINITY, deadline);
  });
}

/**
 * Runs the commands of a case that write down what would be lost otherwise, and ends the processes that they
 * left. Nothing else may run in the sandbox. A command that fails does not end the trial; the failure is
 * noted.
 */
async function runCollectCommands(
  container: Container,
  commands: readonly CollectCommand[],
  clock: Clock,
  signal: AbortSignal,
): Promise<{ kind: 'note'; at: number; text: string }[]> {
  const notes: { kind: 'note'; at: number; text: string }[] = [];
  for (const { command, timeoutMs, user } of commands) {
    const result = await container.exec({
      argv: ['bash', '-c', `{ ${command}\n} 2>&1`],
      env: gradingEnvironment({}, container),
      ...(user !== undefined && { user }),
      timeoutMs,
      signal,
    });
    signal.throwIfAborted();
    if (isSuccess(result)) continue;
    const how = howItEnded(result, timeoutMs);
    const output = result.stdout.text.slice(0, printedText.bytes.line);
    const text = `the collect command ${how}: ${command}\n${output}`;
    notes.push({ kind: 'note', at: clock.now(), text });
  }
  if (commands.length > 0) await container.killAll(signal);
  return notes;
}

/**
 * The maximum total length in bytes of the workspace's files. What prepare made is not the agent's fault. If
 * the harness exceeded its disk limit, what it really took of the disk counts too, up to what it can take
 * before it is ended.
 */
export async function largestWorkspace(
  spec: TrialSpec,
  { container, prepared, signal }: TrialSandbox,
  found: OpenRecord,
): Promise<number> {
  const { disk } = spec.sandbox;
  const taken = found.harness?.ended === 'out-of-disk' ? await container.diskUse(signal) : 0;
  return (await prepared()).bytes + disk + Math.min(taken, disk + diskMeasure.bytes.margin);
}
