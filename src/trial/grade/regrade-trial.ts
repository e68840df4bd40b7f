import { createHash } from 'node:crypto';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import { steadyClock } from '../../base/clock.ts';
import { infrastructureError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { commandOutput, keptWorkspaces } from '../../bounds/sandbox.ts';
import type { NewEntry } from '../../engine/archive/entries.ts';
import type { Container } from '../../engine/container.ts';
import { isSuccess } from '../../engine/exec/exec-request.ts';
import type { KeptWorkspace, Workspaces } from '../../ledger/workspaces.ts';
import type { Cause, PhaseName } from '../../record/cause.ts';
import type { FileChange } from '../../record/files.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import type { PlannedReplay } from '../../suite/plan.ts';
import { emptyWorkspace } from '../../validate/workspace-copy.ts';
import { causeOf } from '../blame.ts';
import { needsWholeSandbox } from '../collect/keep-left.ts';
import { GradingSandboxes, type OpenRecord, PhaseTimer, type TrialParts } from '../phase.ts';
import { sandboxFacts } from '../prepare/started-sandbox.ts';
import { recordOf, withServices } from '../record.ts';
import { openModels } from '../run/models.ts';
import { type TrialSpec, wholeSolution } from '../spec.ts';
import { grade } from './grade.ts';

/** What is graded again. */
export interface LeftTrial {
  /** How to grade it: its places, scripts and judges are today's. */
  spec: TrialSpec;
  record: TrialRecord;
  /** The sha256 of the blob with the record. */
  recordBlob: string;
  kept: KeptWorkspace;
  /** The suite file that says how to grade. */
  suite: string | undefined;
  notes: readonly string[];
}

export interface RegradeParts extends Omit<TrialParts, 'keep'> {
  workspaces: Pick<Workspaces, 'read'>;
  /** The recording whose answers take the place of judges. */
  judgesOf?: PlannedReplay | undefined;
}

/** Why this grading cannot be done with what was kept; undefined if it can be tried. */
export function placeObstacle(spec: TrialSpec, kept: Pick<KeptWorkspace, 'kind'>): string | undefined {
  if (kept.kind === 'image' || !needsWholeSandbox(spec)) return undefined;
  return 'its grading needs the sandbox of the agent, and only the workspace was kept';
}

/**
 * Why a trial with services cannot be graded again; undefined if it can. What its services held is not kept.
 * Tests in a fresh sandbox are no obstacle: in the trial, too, they reached only services that no agent had
 * used.
 *
 * @param newServices whether the user accepts newly started services
 */
export function servicesObstacle(spec: TrialSpec, newServices: boolean): string | undefined {
  if (newServices || !needsServices(spec)) return undefined;
  return 'its grading uses its services, whose state was not kept: --new-services starts new ones';
}

/** Whether what a trial's services hold can decide its verdict. */
function needsServices({ environment, tests }: Pick<TrialSpec, 'environment' | 'tests'>): boolean {
  return environment.services !== undefined && !tests?.fresh;
}

/**
 * Grades what a trial left again, in the same phases as in the trial: collect, verify, validate, and a
 * control if there is no verdict. No agent runs. Resolves with a separate record, which has what grading
 * found but not what the agent did. Rejects only if the signal aborts.
 */
export async function regradeTrial(
  left: LeftTrial,
  given: RegradeParts,
  signal: AbortSignal,
  onPhase: (phase: PhaseName) => void,
): Promise<TrialRecord> {
  const clock = steadyClock(given.clock);
  const parts = { ...given, clock };
  const { sandboxes } = parts;
  const { record, kept } = left;
  const spec = withoutAgent(left.spec);
  const timer = new PhaseTimer(clock, onPhase);
  const notes = [...left.notes, ...(needsServices(spec) ? [startedAnew] : [])];
  let facts: Partial<TrialRecord> = {};
  let found: OpenRecord = {};
  // Judges are asked again, because their prompts have changed, unless their recorded answers are wanted.
  await using models = openModels({ ...spec, replay: parts.judgesOf }, parts);
  try {
    using held = new DisposableStack();
    const sandbox = await timer.run('sandbox', async () => {
      const started = await (kept.kind === 'image'
        ? sandboxes.takeKept(spec, kept.name ?? '', signal)
        : sandboxes.takeForGrading(spec, signal, undefined));
      held.defer(() => sandboxes.giveBack(started));
      if (kept.kind === 'archive') await restoreArchive(started.container, kept, parts.workspaces, signal);
      return started;
    });
    facts = { ...sandboxFacts(sandbox), images: sandbox.images };
    if (record.imageId !== sandbox.imageId) notes.push('its environment was made again since the trial');
    const graders = held.use(new GradingSandboxes({ spec, parts, signal, services: sandbox.services }));
    graders.start();
    const { filesChanged = [], systemChanges } = record;
    const lists = kept.kind === 'image' ? Object.values(systemChanges ?? {}) : [];
    const systemPaths = lists.flatMap(({ paths }) => paths);
    if (lists.some(({ paths, count }) => paths.length < count)) notes.push(systemPathsCut);
    const { services } = sandbox;
    const restored = { filesChanged, systemPaths };
    // Its sandbox is as the harness left it, and no harness runs.
    const reached = { reach: async () => undefined, solve: wholeSolution(spec) };
    const only = { whole: spec, step: 0, isLastStep: true, ...reached };
    const place = { ...sandbox, ...only, users: new Map(), parts, graders, models, signal, restored };
    found = await grade(spec, place, { ...facts, ...doneBy(record) }, timer.phasesOf());
    found = await withServices(found, services, parts.blobs);
  } catch (error) {
    signal.throwIfAborted();
    found = { verdict: 'void', cause: causeOf(error, timer.current) };
  }
  const account = await models?.session.account();
  return {
    ...recordOf(spec, { ...facts, ...without(ofAgent, found) }, { account, ...timer.times() }),
    regrade: { of: left.recordBlob, ...(left.suite !== undefined && { suite: left.suite }), notes },
  };
}

/** The trial without the models and the network of its agent; judges stay. */
function withoutAgent(spec: TrialSpec): TrialSpec {
  return {
    ...spec,
    modelConfig: undefined,
    user: undefined,
    sandbox: { ...spec.sandbox, network: 'none' },
  };
}

/** What the agent did, which grading reads, and which is in the record of the trial. */
const ofAgent = [
  'harness',
  'trajectory',
  'derivedTrajectory',
  'harnessTellsCommands',
  'commandsCut',
  'finalMessage',
  'models',
] as const;

/** The parts of the trial's record that grading reads. */
function doneBy(record: TrialRecord): OpenRecord {
  const done = ofAgent.map((name) => [name, record[name]]);
  return { ...Object.fromEntries(done), cause: endingOf(record.cause) };
}

function without(names: readonly string[], found: OpenRecord): OpenRecord {
  return Object.fromEntries(Object.entries(found).filter(([name]) => !names.includes(name)));
}

/** The cause, if it arose before the grading. */
function endingOf(cause: Cause | undefined): Cause | undefined {
  return cause?.phase === 'harness' ? cause : undefined;
}

const startedAnew = 'its services were newly started, without what the agent did to them';

const systemPathsCut = 'of the paths that had changed outside the workspace, only the first ones are known';

/** Why what a trial left cannot be graded again; undefined if it can be tried. */
export function obstacleOf(
  kept: KeptWorkspace | undefined,
  store: Pick<Workspaces, 'has'>,
): string | undefined {
  if (kept === undefined) return 'what it left was not kept';
  if (kept.removedAt !== undefined)
    return 'what it left was removed to free disk space, or was not copied to this backup';
  if (kept.kind === 'archive' && !store.has(kept.name ?? ''))
    return 'the archive of its workspace is missing';
  // A record of somebody else may say any size.
  if (kept.kind === 'archive' && kept.byteSize > keptWorkspaces.bytes.archive)
    return 'the archive of its workspace is larger than any that is kept';
  return undefined;
}

/**
 * Replaces the workspace of a fresh container by a kept archive. The engine unpacks it, in the container and
 * nowhere else, while its disk is watched. The archive is compared with its hash and its size. Throws
 * `ARCHIVE_DAMAGED`, `ENGINE_TOO_LARGE` or `DISK_FULL`; the container must then not be used.
 */
export async function restoreArchive(
  container: Container,
  { name = '', byteSize }: Pick<KeptWorkspace, 'name' | 'byteSize'>,
  store: Pick<Workspaces, 'read'>,
  signal: AbortSignal,
): Promise<void> {
  await emptyWorkspace(container, signal);
  // A folder takes eight times as much of a disk as of an archive, and a file of one byte four times.
  await container.fill({ maxBytes: 8 * byteSize, signal }, (filling = signal) =>
    unpackKept(container, { name, byteSize }, store, filling),
  );
}

async function unpackKept(
  container: Container,
  { name, byteSize }: { name: string; byteSize: number },
  store: Pick<Workspaces, 'read'>,
  signal: AbortSignal,
): Promise<void> {
  const hash = createHash('sha256');
  const file = store.read(name);
  file.on('data', (chunk) => hash.update(chunk));
  const archive = exactly(byteSize);
  const sending = pipeline(file, createZstdDecompress(), archive, { signal });
  sending.catch(() => undefined);
  try {
    await container.unpack(container.workingDir, archive, signal);
    await sending;
  } catch (error) {
    signal.throwIfAborted();
    // The reason is in the archive if reading it failed, and in the engine otherwise.
    await sending.catch((thrown: unknown) => {
      throw damaged(messageOf(thrown), thrown);
    });
    throw error;
  }
  if (hash.digest('hex') !== name) throw damaged('its content has another hash');
}

/**
 * Passes the given number of bytes on, and fails at the next one: a small file can be compressed from a huge
 * one.
 */
function exactly(byteSize: number): Transform {
  let left = byteSize;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      done(left < 0 ? new Error('it is longer than it was') : null, chunk);
    },
    flush(done) {
      done(left > 0 ? new Error('it is shorter than it was') : null);
    },
  });
}

function damaged(why: string, cause?: unknown): OffsiteError {
  return infrastructureError('ARCHIVE_DAMAGED', `the archive of the workspace is damaged: ${why}`, { cause });
}

/** A path whose state after the trial is not known well enough to restore it. */
export interface Unrestored {
  path: string;
  why: string;
}

interface RestoreOptions {
  /** Reads a blob; undefined if it is gone. */
  read(sha256: string): Buffer | undefined;
  signal: AbortSignal;
}

/**
 * Puts the workspace of a container, which was started from the trial's image, into the state in which the
 * agent left it, as far as the record knows it: texts, artifacts, links, deleted paths, modes. Resolves with
 * what it could not restore. Two to four round trips.
 */
export async function restoreWorkspace(
  container: Container,
  record: TrialRecord,
  { read, signal }: RestoreOptions,
): Promise<Unrestored[]> {
  const artifacts = new Map(record.artifacts?.map(({ path, sha256 }) => [path, sha256]));
  const changes = record.changes ?? changesByName(record, artifacts);
  const owner = await ownerIn(container, signal);
  const entries: NewEntry[] = [];
  /** NUL-separated pairs of a mode, or `-` to remove, and a path. */
  const edits: string[] = [];
  const unrestored: Unrestored[] = [];
  for (const change of changes) {
    const { path, kind, before, after } = change;
    if (kind === 'deleted' || (before && after && before.type !== after.type)) edits.push('-', path);
    if (kind === 'deleted') continue;
    const mode = after && after.mode & 0o7777;
    if (after?.type === 'symlink' && after.linkTarget !== undefined) {
      entries.push({ path, linkTarget: after.linkTarget });
    } else if (after?.type === 'folder') {
      entries.push({ path, folder: true, ...(mode !== undefined && { mode }), ...owner });
    } else if (after && isSameContent(change)) {
      edits.push((after.mode & 0o7777).toString(8), path);
    } else {
      const sha256 = after?.content ?? artifacts.get(path);
      const content = sha256 === undefined ? undefined : read(sha256);
      if (content) entries.push({ path, content, ...(mode !== undefined && { mode }), ...owner });
      else unrestored.push({ path, why: whyNot(change) });
    }
  }
  const input = edits.map((part) => `${part}\0`).join('');
  if (edits.length > 0) await run(container, ['bash', '-c', editing], signal, input);
  if (entries.length > 0) await container.put(entries, container.workingDir, signal);
  return unrestored;
}

/** Without the contents, only artifacts are known. */
function changesByName({ filesChanged = [] }: TrialRecord, artifacts: Map<string, string>): FileChange[] {
  const paths = new Set([...filesChanged, ...artifacts.keys()]);
  return [...paths].map((path) => ({ path, kind: 'modified' as const }));
}

function isSameContent({ before, after, omitted }: FileChange): boolean {
  const isFile = before?.type === 'file' && after?.type === 'file';
  return isFile && omitted === undefined && after.content === undefined && before.content === undefined;
}

function whyNot({ omitted, after }: FileChange): string {
  if (omitted === 'binary') return 'it is not text';
  if (omitted === 'large') return 'it was too large to keep';
  if (omitted === 'room') return 'too much changed to keep all of it';
  if (after === undefined) return 'its content was not kept';
  return after.content === undefined ? `it is a ${after.type}` : 'its blob is gone';
}

const editing = `
while IFS= read -r -d '' mode && IFS= read -r -d '' path; do
  if [ "$mode" = - ]; then rm -rf -- "./$path"; else chmod -- "$mode" "./$path"; fi
done`;

/** The user and the group of what the sandbox's own user writes. */
async function ownerIn(container: Container, signal: AbortSignal): Promise<{ uid: number; gid: number }> {
  const ids = await run(container, ['sh', '-c', 'id -u && id -g'], signal);
  const [uid = 0, gid = 0] = ids.trim().split('\n').map(Number);
  return { uid, gid };
}

async function run(
  container: Container,
  argv: string[],
  signal: AbortSignal,
  stdin?: string,
): Promise<string> {
  const result = await container.exec({
    argv,
    cwd: container.workingDir,
    timeoutMs: commandOutput.time.workspaceCopy,
    ...(stdin !== undefined && { stdin }),
    signal,
  });
  signal.throwIfAborted();
  if (isSuccess(result)) return result.stdout.text;
  throw infrastructureError(
    'WORKSPACE_NOT_RESTORED',
    `the workspace cannot be restored: ${result.stderr.text.trim() || result.ended}`,
    { hint: 'The image of the trial needs bash, id, chmod and rm.' },
  );
}
