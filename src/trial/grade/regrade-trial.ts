import { steadyClock } from '../../base/clock.ts';
import type { KeptWorkspace, Workspaces } from '../../ledger/workspaces.ts';
import type { Cause, PhaseName } from '../../record/cause.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import type { PlannedReplay } from '../../suite/plan.ts';
import { needsWholeSandbox } from '../collect/keep-left.ts';
import { causeOf } from '../failure.ts';
import { GradingSandboxes, type OpenRecord, PhaseTimer, type TrialParts } from '../phase.ts';
import { sandboxFacts } from '../prepare/started-sandbox.ts';
import { recordOf, withServices } from '../record.ts';
import { openModels } from '../run/models.ts';
import type { TrialSpec } from '../spec.ts';
import { grade } from './grade.ts';
import { restoreArchive } from './restore-left.ts';
import { wholeSolution } from './solution.ts';

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
    const systemPaths = kept.kind === 'image' ? pathsOf(systemChanges) : [];
    if (kept.kind === 'image' && isCut(systemChanges)) notes.push(systemPathsCut);
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

function isCut(changes: TrialRecord['systemChanges']): boolean {
  const lists = listsOf(changes);
  return lists.some(({ paths, count }) => paths.length < count);
}

function pathsOf(changes: TrialRecord['systemChanges']): string[] {
  return listsOf(changes).flatMap(({ paths }) => paths);
}

function listsOf(changes: TrialRecord['systemChanges']) {
  return changes ? [changes.kept, changes.unexpected, ...(changes.caches ? [changes.caches] : [])] : [];
}
