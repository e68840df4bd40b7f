import { readPlan } from '../../agent/stored-plan.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { Container } from '../../engine/container.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Image } from '../../engine/port/images.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { KeptWorkspace } from '../../ledger/workspaces.ts';
import { noEnvironment, sandboxIn } from '../../suite/environment.ts';
import { SandboxConfig } from '../../suite/sandbox-config.ts';
import { ours, type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { shellWord } from '../../text/shell-word.ts';
import { containerSpec, defaultContext } from '../../trial/container-spec.ts';
import { type StartSpec, startOf } from '../../trial/image/start-image.ts';
import { obstacleOf, restoreArchive } from '../../trial/left/restore-left.ts';
import { restoreWorkspace, type Unrestored } from '../../trial/workspace/restore-workspace.ts';
import { firstOf } from '../show/layout.ts';
import type { ShownTrial } from '../show/story.ts';

export interface OpenedSandbox {
  container: Container;
  /** What differs from the sandbox in which the agent worked. */
  notes: Printable[];
}

/** How many paths that were not restored are named. */
const named = 10;

/**
 * Makes a sandbox from the image of a trial, without a network, and puts the workspace into it as the agent
 * left it. Dispose of the container. Throws `IMAGE_GONE`.
 */
export async function openSandbox(
  { ledger, engine, signal }: { ledger: Ledger; engine: Engine; signal: AbortSignal },
  shown: ShownTrial,
): Promise<OpenedSandbox> {
  const { record } = shown;
  const kept = await keptOf({ ledger, engine, signal }, shown);
  const image = await imageOf(engine, shown, signal);
  // A kept image has the whole sandbox as the agent left it.
  const imageId = kept?.kind === 'image' && kept.name !== undefined ? kept.name : image.id;
  const planned = plannedSandbox(ledger, shown);
  const environment = planned?.environment ?? noEnvironment;
  const sandbox = planned?.sandbox ?? { ...SandboxConfig.parse({}), name: 'local' };
  const { workspace = defaultContext.workspace, user } = record;
  const start = { ...startOf({ ...image, user: user ?? '' }, { sandbox, environment }), workspace };
  const labels = { 'offsite.run': shown.run.id };
  const env = { ...environment.env, ...start.env };
  const spec = containerSpec(sandbox, { ...start, env }, { network: 'none', labels });
  const container = await engine.createContainer({ ...spec, imageId }, signal);
  try {
    await container.start(signal);
    const notes = [
      ...(planned ? [] : ['its limits are the default ones: the ledger does not have those of the trial']),
      ...(record.environment?.some(({ phase, image }) => phase === 'prepare' && image === undefined)
        ? ['prepare ran in the sandbox itself, so what it left outside of the changed files is missing']
        : []),
    ];
    const restored =
      kept?.kind === 'image' || (await restoredWhole(container, kept, ledger, signal))
        ? []
        : await restoreFromRecord(container, shown, ledger, signal);
    return { container, notes: [...notes.map(ours), ...restored] };
  } catch (error) {
    await container[Symbol.asyncDispose]();
    throw error;
  }
}

/** Restores the archive of the workspace, if one was kept. Resolves with whether all of it is there. */
async function restoredWhole(
  container: Container,
  kept: KeptWorkspace | undefined,
  { workspaces }: Ledger,
  signal: AbortSignal,
): Promise<boolean> {
  if (kept?.kind === 'archive') await restoreArchive(container, kept, workspaces, signal);
  return kept !== undefined;
}

/** Restores what the record has of the workspace. Resolves with what is missing. */
async function restoreFromRecord(
  container: Container,
  { record }: ShownTrial,
  ledger: Ledger,
  signal: AbortSignal,
): Promise<Printable[]> {
  const read = (sha256: string) => ledger.blobs.tryRead(sha256);
  const unrestored = await restoreWorkspace(container, record, { read, signal });
  const count = record.filesChangedCount ?? 0;
  const described = record.changes?.length ?? record.filesChanged?.length ?? 0;
  const notes = [
    ...(record.changes ? [] : ['the ledger has no contents of its changed files, except artifacts']),
    ...(count > described ? [`${count - described} further changed files are not known`] : []),
  ].map(ours);
  const isGit = ({ path }: Unrestored) => /(^|\/)\.git\//.test(path);
  const ofGit = unrestored.filter(isGit).length;
  const others = unrestored.filter((one) => !isGit(one));
  const missing = [
    ...firstOf(others, named, ({ path, why }) => text`not restored: ${path}: ${why}`),
    ...(ofGit > 0 ? [ours(`not restored: ${plural(ofGit, 'file')} of git, which may miss commits`)] : []),
  ];
  return [...notes, ...missing.map((line) => text`${line}`)];
}

/** What was kept of a trial, if it is still there. */
async function keptOf(
  { ledger, engine, signal }: { ledger: Ledger; engine: Engine; signal: AbortSignal },
  { trial }: ShownTrial,
): Promise<KeptWorkspace | undefined> {
  const kept = ledger.workspaces.of(trial.key);
  if (kept === undefined || obstacleOf(kept, ledger.workspaces) !== undefined) return undefined;
  if (kept.kind === 'image' && !(await engine.findImage(kept.name ?? '', signal))) return undefined;
  return kept;
}

async function imageOf(
  engine: Engine,
  { record, batch, words }: ShownTrial,
  signal: AbortSignal,
): Promise<Image> {
  const { imageId } = record;
  if (imageId === undefined) {
    throw new OffsiteError(`${words} has no sandbox to look into: the trial never had one`, {
      code: 'IMAGE_GONE',
      kind: 'input',
      hint: `\`offsite show ${words}\` says why.`,
    });
  }
  const image = await engine.findImage(imageId, signal);
  if (image) return image;
  const again = batch.file === undefined ? 'its suite' : `\`offsite run ${shellWord(batch.file)}\``;
  throw new OffsiteError(`the engine no longer has ${imageId}, the image of ${words}`, {
    code: 'IMAGE_GONE',
    kind: 'input',
    hint: `Run ${again} again: that makes the image again, for the shells of its new trials.`,
  });
}

/** The sandbox and the environment that were planned; undefined if the ledger does not have the plan. */
function plannedSandbox({ blobs }: Ledger, { batch, run }: ShownTrial): StartSpec | undefined {
  const content = batch.plan === undefined ? undefined : blobs.tryRead(batch.plan);
  if (!content || run.variantIndex === undefined) return undefined;
  const { plan } = readPlan(JSON.parse(content.toString('utf8')));
  const variant = plan.variants[run.variantIndex];
  const planned = plan.cases.find(({ request }) => request.id === run.caseId);
  // A plan that an older Offsite stored has no environments.
  const environment = planned?.local.environment ?? noEnvironment;
  return variant && { sandbox: sandboxIn(variant.sandbox, environment), environment };
}
