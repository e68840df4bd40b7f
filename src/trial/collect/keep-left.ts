import { statfs } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import pLimit from 'p-limit';
import { startDeadline } from '../../base/deadline.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { archives, keptWorkspaces } from '../../bounds/sandbox.ts';
import { type ChangedContent, changedContents } from '../../engine/changes/changed-paths.ts';
import type { Container } from '../../engine/container.ts';
import type { Workspaces } from '../../ledger/workspaces.ts';
import type { LeftState } from '../../record/files.ts';
import type { StreamSearch } from '../../redaction/redactor.ts';
import type { Keeping, KeepParts, OpenRecord, TrialSandbox } from '../phase.ts';
import type { TrialSpec } from '../spec.ts';

/** Why what a trial left is not kept. */
class NotKept extends Error {}

/** Whether grading needs the agent's whole sandbox, and not only a copy of its workspace. */
export function needsWholeSandbox({ verify, verifyPlace, tests, validator }: GradingParts): boolean {
  const asksSandbox = tests !== undefined && tests.fresh?.brought.kind !== 'workspace';
  return asksSandbox || (verify !== undefined && verifyPlace.in === 'same') || validator?.runsIn === 'same';
}

type GradingParts = Pick<TrialSpec, 'verify' | 'verifyPlace' | 'tests' | 'validator'>;

/**
 * Keeps what a harness left, so that it can be graded again: an archive of the workspace, or an image of the
 * whole sandbox if the sandbox is graded or the image is smaller. Call this when nothing runs in the sandbox,
 * after collect. Rejects only if the signal aborts: a trial does not depend on this.
 */
async function keepLeft(
  spec: TrialSpec,
  sandbox: TrialSandbox,
  found: OpenRecord,
  { store, budget }: KeepParts,
): Promise<LeftState> {
  const { whole, parts, signal } = sandbox;
  using deadline = startDeadline(parts.clock, keptWorkspaces.time.keeping, signal);
  try {
    if (whole.steps) throw new NotKept('workspaces of trials with several steps are not kept');
    if (needsWholeSandbox(spec)) return await keepImage(spec, sandbox, store, deadline.signal);
    if (found.carry === 'nothing') return { kind: 'untouched' };
    if (await changedLittle(sandbox, deadline.signal))
      return await keepImage(spec, sandbox, store, deadline.signal);
    return await keepArchive(sandbox, found, { store, budget }, deadline.signal);
  } catch (error) {
    signal.throwIfAborted();
    const why = deadline.expired()
      ? `that took more than ${seconds(keptWorkspaces.time.keeping)}`
      : whyNot(error);
    return { kind: 'not-kept', why };
  }
}

/**
 * Whether a large workspace consists mostly of what prepare made. An image has only what was written since,
 * and takes a tenth of a second; an archive has everything, and takes a second for each 100 MB.
 */
async function changedLittle(
  { prepared, isCommittable, container }: TrialSandbox,
  signal: AbortSignal,
): Promise<boolean> {
  const { state, bytes } = await prepared();
  if (state !== 'large' || !isCommittable) return false;
  return (await container.imageBytes(signal)) < bytes / 2;
}

async function keepImage(
  spec: TrialSpec,
  { parts, container, imageId, isCommittable }: TrialSandbox,
  store: Pick<Workspaces, 'search'>,
  signal: AbortSignal,
): Promise<LeftState> {
  if (!isCommittable)
    throw new NotKept('its sandbox has processes of prepare, or volumes, which no image keeps');
  const storedSize = await container.imageBytes(signal);
  if (storedSize > keptWorkspaces.bytes.image)
    throw new NotKept(`more than ${gibibytes(keptWorkspaces.bytes.image)} was written in its sandbox`);
  if (storedSize > (await container.diskUse(signal)) + archives.bytes.dense)
    throw new NotKept('its sandbox has sparse files, whose holes no image keeps');
  requireNoKey(await searchChanges(container, store, signal));
  const description = `what ${spec.caseName} #${spec.ordinal} left`;
  const kept = await parts.sandboxes.keep(container, { parentImageId: imageId, description }, signal);
  return { kind: 'image', imageId: kept, storedSize };
}

function requireNoKey(searched: Searched): void {
  if (searched === 'key') throw new NotKept('a key of this machine is in its sandbox');
  if (searched === 'too-many') throw new NotKept('too much changed in its sandbox to search it for keys');
}

async function keepArchive(
  { container }: TrialSandbox,
  found: OpenRecord,
  { store, budget }: KeepParts,
  signal: AbortSignal,
): Promise<LeftState> {
  const { bavail, bsize } = await statfs(store.folder);
  const room = Math.min(keptWorkspaces.bytes.stored, budget, (bavail * bsize) / 4);
  const again = found.packed?.read();
  using asked = again
    ? undefined
    : await container.pack(container.workingDir, { maxBytes: keptWorkspaces.bytes.archive, signal });
  const seen: Seen = { bytes: 0 };
  const archive = searched(again ?? asked?.archive ?? Readable.from([]), store.search(), seen);
  const level = { [constants.ZSTD_c_compressionLevel]: 1 };
  const compressed = createZstdCompress({ params: level });
  const sending = pipeline(archive, compressed, { signal });
  // The reader gets the error too.
  sending.catch(() => undefined);
  const { sha256, byteSize } = await store.store(upTo(room, compressed)).catch((error: unknown) => {
    throw seen.problem ?? (error instanceof OffsiteError ? (error.cause ?? error) : error);
  });
  await sending;
  return { kind: 'archive', sha256, byteSize: seen.bytes, storedSize: byteSize };
}

/** What was seen of an archive that passed. */
interface Seen {
  bytes: number;
  /** Why it was refused. */
  problem?: NotKept;
}

/** Passes an archive on, and refuses one that is too large or has a key of this machine. */
async function* searched(
  archive: AsyncIterable<Buffer>,
  search: ReturnType<Workspaces['search']>,
  seen: Seen,
): AsyncGenerator<Buffer> {
  const refuse = (why: string): never => {
    seen.problem = new NotKept(why);
    throw seen.problem;
  };
  for await (const chunk of archive) {
    seen.bytes += chunk.length;
    if (seen.bytes > keptWorkspaces.bytes.archive)
      refuse(`its archive has more than ${gibibytes(keptWorkspaces.bytes.archive)}`);
    // A redacted file could get another verdict, so an archive with a key is refused as a whole.
    if (search?.push(chunk)) refuse(keyFound);
    yield chunk;
  }
  if (search?.end()) refuse(keyFound);
}

const keyFound = 'a key of this machine is in the workspace';

async function* upTo(most: number, compressed: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of compressed) {
    bytes += chunk.length;
    if (bytes > most)
      throw new NotKept(`it would take more than ${Math.floor(most / 1024 ** 2)} MiB of the disk`);
    yield chunk;
  }
}

function whyNot(error: unknown): string {
  if (error instanceof OffsiteError && error.code === 'ENGINE_TOO_LARGE')
    return `its workspace has more than ${gibibytes(keptWorkspaces.bytes.archive)}`;
  return messageOf(error);
}

function gibibytes(bytes: number): string {
  return `${bytes / 1024 ** 3} GiB`;
}

function seconds(ms: number): string {
  return `${ms / 1000} s`;
}

/** Keeps what one trial leaves. Without `parts`, keeps nothing. */
export function keeping(parts: KeepParts | undefined): Keeping {
  let kept: Promise<LeftState> | undefined;
  return {
    begin(spec, sandbox, found) {
      if (parts === undefined || kept !== undefined) return;
      kept = keepLeft(spec, sandbox, found, parts);
      kept.catch(() => undefined);
    },
    get done() {
      return kept?.catch(() => undefined);
    },
    async result() {
      const left = await kept;
      return left ? { left } : {};
    },
  };
}

/** What the search of a sandbox found. */
type Searched = 'key' | 'no-key' | 'too-many';

/** Archives at a time. Most have only a few kilobytes, so most of the time goes into round trips. */
const atATime = 4;

/**
 * Looks for keys in everything that was created or changed in a container: in the contents, names and link
 * targets, as the engine gives them. No program of the container takes part, and nothing may run in it. Two
 * round trips, and one or two more for each path. Throws `ENGINE_TOO_LARGE`.
 *
 * @param store knows the keys; if it knows none, nothing is read
 */
async function searchChanges(
  container: Pick<Container, 'changes' | 'layerPaths' | 'kindOf' | 'pack'>,
  store: Pick<Workspaces, 'search'>,
  signal: AbortSignal,
): Promise<Searched> {
  if (!store.search()) return 'no-key';
  const most = {
    changes: keptWorkspaces.count.changes,
    contents: keptWorkspaces.count.contents,
  };
  const contents = await changedContents(container, { most, signal });
  if (contents === undefined) return 'too-many';
  const limit = pLimit(atATime);
  const found = new AbortController();
  const either = AbortSignal.any([signal, found.signal]);
  const look = async ({ path, isAdded }: ChangedContent) => {
    if (either.aborted) return;
    // What changed inside a folder is listed under its own path.
    if (!isAdded && (await container.kindOf(path, either)) === 'folder') return;
    const search = store.search();
    if (search && (await hasKey(container, path, search, either))) found.abort(new Error('a key was found'));
  };
  const all = await Promise.allSettled(contents.map((content) => limit(() => look(content))));
  signal.throwIfAborted();
  if (found.signal.aborted) return 'key';
  for (const one of all) if (one.status === 'rejected') throw one.reason;
  return 'no-key';
}

async function hasKey(
  container: Pick<Container, 'pack'>,
  path: string,
  search: StreamSearch,
  signal: AbortSignal,
): Promise<boolean> {
  using packed = await container.pack(path, { maxBytes: keptWorkspaces.bytes.archive, signal });
  for await (const chunk of packed.archive as AsyncIterable<Buffer>) if (search.push(chunk)) return true;
  return search.end();
}
