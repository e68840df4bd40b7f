import type { Clock } from '../base/clock.ts';
import { startDeadline } from '../base/deadline.ts';
import { infrastructureError, inputError, messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { Case } from '../contract/definition.ts';
import { receiving } from '../contract/receiving.ts';
import { type RunVariant, Setup } from '../contract/record.ts';
import type { Engine } from '../engine/engine.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { detailsOf, type StoredTrial } from '../ledger/trial-rows.ts';
import type { Config } from '../suite/config-file.ts';
import { checksFile, unfilledName } from '../suite/load-tests.ts';
import { noExtras, type PlannedVariant, type SuitePlan } from '../suite/plan.ts';
import { type HarnessOffer, plannedVariant } from '../suite/planned-variant.ts';
import { unsetNames, usesVariables } from '../suite/variables.ts';
import { passedEnvironment, refuseKeys } from '../trial/prepare/environment.ts';
import { checkSandboxes, needsOf } from '../trial/prepare/start-image.ts';
import { checkModels } from '../trial/run/models.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { BatchContexts } from './batch-contexts.ts';
import type { Run } from './batch-run.ts';
import type { ConfigRevision } from './config-revision.ts';
import { checkOnEngines, type SomeEngines } from './engines/check.ts';
import { trialSpec } from './trial-spec.ts';

/** What the ledger keeps of a found run besides its setup. */
export interface FoundRunDetails {
  variant: RunVariant | undefined;
  /**
   * The case as it was sent, without the texts that its setup has. Only known for runs of this process's own
   * service; a run record has no field for it.
   */
  definition?: Case | undefined;
}

export type Specified = { kind: 'ready'; spec: TrialSpec } | NotReady;

/** Why a trial cannot be run now. */
export type NotReady = { reason: string; error?: OffsiteError } & (
  | {
      /** Until the configuration changes; with `again`, until the machine may have changed. */
      kind: 'waiting';
      again: boolean;
    }
  /** For good. */
  | { kind: 'parked' }
);

export interface SpecParts {
  ledger: Ledger;
  batches: Pick<BatchContexts, 'planOf'>;
  harnesses: readonly HarnessOffer[];
  revision: Pick<ConfigRevision, 'config'>;
}

/**
 * What to do in a queued trial, or why it cannot run. Rejects only for bugs in Offsite.
 *
 * @param check throws an OffsiteError if this machine lacks what the trial needs
 */
export async function specify(
  trial: StoredTrial,
  parts: SpecParts,
  check: (spec: TrialSpec) => Promise<void>,
): Promise<Specified> {
  try {
    const specified = trial.origin === 'found' ? found(trial, parts) : planned(trial, parts);
    if (specified.kind === 'ready') await check(specified.spec);
    return specified;
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    const reason = error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
    return parking.has(error.code)
      ? { kind: 'parked', reason, error }
      : { kind: 'waiting', reason, error, again: error.kind === 'infrastructure' };
  }
}

/** Milliseconds within which an engine says whether it has an image. */
const answersMs = 30_000;

/** Checks that engines, environment and models have what trials need. Asks once for each sandbox. */
export class MachineCheck {
  readonly #parts: SomeEngines & { clock: Clock };
  /** The sandboxes, as JSON, that one of the engines can run. */
  readonly #seen = new Set<string>();
  readonly #fits = new Map<Engine, Map<string, boolean>>();

  constructor(parts: SomeEngines & { clock: Clock }) {
    this.#parts = parts;
  }

  /** Throws an OffsiteError that says what is missing. Rejects if the signal aborts. */
  async look(spec: TrialSpec, revision: ConfigRevision, signal: AbortSignal): Promise<void> {
    const { sandbox, environment, model, modelConfig, user, judges, replay } = spec;
    passedEnvironment(sandbox, revision.host);
    refuseKeys(spec, revision.host);
    const seen = JSON.stringify([sandbox, environment.image]);
    if (!this.#seen.has(seen)) {
      try {
        await checkOnEngines(
          this.#parts,
          { variants: [{ sandbox }], cases: [{ local: { environment } }] },
          signal,
        );
      } catch (error) {
        signal.throwIfAborted();
        throw error;
      }
    }
    this.#seen.add(seen);
    const variants = [{ model, modelConfig, userModel: user?.model }];
    await checkModels({ variants, judges, replay }, revision);
  }

  /**
   * Whether an engine can run a trial. True also if the engine does not answer, because it may be able to.
   * Rejects if the signal aborts.
   */
  async fits(engine: Engine, spec: TrialSpec, signal: AbortSignal): Promise<boolean> {
    const { sandbox, environment, tests, steps } = spec;
    const local = { environment, tests, steps };
    const key = JSON.stringify([sandbox, environment.image, needsOf({ local })]);
    const known = this.#fits.get(engine) ?? new Map<string, boolean>();
    this.#fits.set(engine, known);
    const before = known.get(key);
    if (before !== undefined) return before;
    using deadline = startDeadline(this.#parts.clock, answersMs, signal);
    try {
      await checkSandboxes(engine, { variants: [{ sandbox }], cases: [{ local }] }, deadline.signal);
      known.set(key, true);
    } catch (error) {
      signal.throwIfAborted();
      const cannot =
        error instanceof OffsiteError && (error.kind === 'input' || error.code === 'IMAGE_MISSING');
      if (!cannot) return true;
      known.set(key, false);
    }
    return known.get(key) === true;
  }

  /** Checks every sandbox again from now on, because an image may no longer exist. */
  forget(): void {
    this.#seen.clear();
    this.#fits.clear();
  }
}

/** Error codes that no change of the configuration and no waiting can remedy. */
const parking = new Set([
  'SETUP_MISSING',
  'SETUP_UNREADABLE',
  'SOURCE_UNKNOWN',
  'VARIABLES_MISSING',
  'BLOB_MISSING',
  'BLOB_DAMAGED',
  'RUN_UNKNOWN',
  'PLAN_UNREADABLE',
]);

function found(trial: StoredTrial, parts: SpecParts): Specified {
  const { harnesses, revision, ledger } = parts;
  const { config } = revision;
  const { variant: names } = detailsOf<FoundRunDetails>(trial);
  const cell = cellOf(trial, names, parts);
  if (typeof cell === 'string') return { kind: 'waiting', reason: cell, again: false };
  if (cell) return { kind: 'ready', spec: trialSpec(cell.plan, cell, trial, setupOf(trial, ledger)) };
  const variant = knownVariant(names, config, harnesses);
  if (typeof variant === 'string')
    return { kind: 'waiting', reason: `its variant is not known here: ${variant}`, again: false };
  try {
    return { kind: 'ready', spec: foundSpec(trial, variant, parts) };
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    // The service may have sent anything.
    return { kind: 'parked', reason: `its setup cannot be read: ${messageOf(error)}` };
  }
}

function planned(trial: StoredTrial, { batches, ledger }: SpecParts): Specified {
  const { id, plan, runs } = batches.planOf(trial.batch);
  const run = runs.find(({ key }) => key === trial.run);
  if (!run) throw new Error(`trial ${trial.key} belongs to a run that batch ${id} does not have`);
  return { kind: 'ready', spec: trialSpec(plan, run, trial, setupOf(trial, ledger)) };
}

/**
 * What to do in a trial of a run that somebody else planned. It uses the texts of the setup, which the
 * service has already expanded. If the case's definition is not known, the trial accepts every validation
 * that the validator declares, and captures everything. Throws `SETUP_MISSING`, `SETUP_UNREADABLE`,
 * `SOURCE_UNKNOWN`, `USER_MODEL_UNKNOWN`, `VARIABLES_MISSING` and `VARIABLE_UNSET`.
 */
function foundSpec(trial: StoredTrial, variant: PlannedVariant, { ledger, revision }: SpecParts): TrialSpec {
  const { caseId, caseName } = trial;
  // The case has no texts, so the pulled texts differ from them and are not expanded again.
  const { definition: known } = detailsOf<FoundRunDetails>(trial);
  const definition = known ?? { id: caseId, name: caseName };
  if (definition.user && variant.userModel === undefined) throw noUserModel(caseId);
  const judges = [...revision.config.daemon.judges];
  const plan = { suite: { prompt: { kind: 'text' as const, text: '' } }, judges };
  const run = { case: { request: definition, local: noExtras }, variant };
  const spec = trialSpec(plan, run, trial, setupOf(trial, ledger));
  if (known === undefined) refuseUnknownVariables(spec);
  return spec;
}

/**
 * Throws if something in a trial needs variables of a case whose definition is not known: checks of other
 * files and texts, and scripts without them, could pass for what was asked.
 */
function refuseUnknownVariables({ prepare, verify, validator, sandbox }: TrialSpec): void {
  const checks = validator?.files.find(({ path }) => path === checksFile)?.content;
  const [, inChecks] = checks?.match(unfilledName) ?? [];
  // Checks have a module of Offsite's own.
  const source = checks === undefined ? validator?.source : undefined;
  const inValidator = source !== undefined && !source.startsWith('#!') && usesVariables(source);
  if (inChecks !== undefined || inValidator) {
    const what = inValidator ? 'its validator uses variables' : `its checks need the variable ${inChecks}`;
    throw inputError('VARIABLES_MISSING', `${what}, and a run's record has none`, {
      hint: 'The daemon that was given the suite has them.',
    });
  }
  const scripts = { prepare, verify, validator: source?.startsWith('#!') ? source : undefined };
  for (const [what, script = ''] of Object.entries(scripts)) {
    const [name] = unsetNames(script, sandbox.passEnv);
    if (name === undefined) continue;
    throw inputError('VARIABLE_UNSET', `its ${what} reads $${name}, and a run's record has no variables`, {
      hint: `Write {{${name}}} in the suite, or if the image or this machine sets it, name it in sandboxes.${sandbox.name}.passEnv.`,
    });
  }
}

/** A request can name neither the model that plays a simulated user nor the number of its messages. */
export function noUserModel(caseId: string): OffsiteError {
  return inputError(
    'USER_MODEL_UNKNOWN',
    `the case ${caseId} has a simulated user, and a request names no model to play it`,
    {
      hint: 'Start the suite with `offsite service start` on the machine that runs it: it keeps what a request cannot carry.',
    },
  );
}

const ReceivedSetup = receiving(Setup);

/** The pulled setup of a trial's run, checked: the client passes setups on unchecked. */
function setupOf({ runId, setup }: StoredTrial, { blobs }: Ledger): Setup {
  const pulled = setup === undefined ? undefined : blobs.readJson(setup);
  if (!pulled) {
    throw infrastructureError(
      'SETUP_MISSING',
      `the service gave run ${runId} no setup, so there is nothing to run`,
    );
  }
  const read = ReceivedSetup.safeParse(pulled);
  if (!read.success) {
    const issues = read.error.issues.map((one) => `${one.path.join('.') || 'all of it'}: ${one.message}`);
    throw infrastructureError(
      'SETUP_UNREADABLE',
      `the setup of run ${runId} is not as documented: ${issues.join('; ')}`,
      { cause: read.error },
    );
  }
  const kind = read.data.source?.kind ?? 'empty';
  if (kind === 'empty') return read.data;
  throw inputError('SOURCE_UNKNOWN', `a case's source of kind "${kind}" is not implemented; only "empty" is`);
}

/**
 * The planned case and variant of a run that somebody added to a batch of this agent, or why they cannot be
 * told. Undefined if this agent did not plan its batch, or if it belongs to none of the batch's cases.
 */
function cellOf(
  trial: StoredTrial,
  names: RunVariant | undefined,
  { ledger, batches }: SpecParts,
): ({ plan: SuitePlan } & Pick<Run, 'case' | 'variant'>) | string | undefined {
  if (ledger.batches.byKey(trial.batch).plan === undefined || names === undefined) return undefined;
  const { plan, runs } = batches.planOf(trial.batch);
  const plannedCase = plan.cases.find(({ request }) => request.id === trial.caseId);
  if (!plannedCase) return undefined;
  const byId = runs.find(({ variantId }) => variantId === names.id)?.variant;
  const [variant, other] = byId ? [byId] : plan.variants.filter((one) => isCalled(one, names));
  if (!variant) return undefined;
  if (!other) return { plan, case: plannedCase, variant };
  const which = `several variants of ${variant.model} in ${variant.harness}`;
  return `its batch has ${which}, and the service does not say which one was rerun`;
}

function isCalled({ model, credentials }: PlannedVariant, names: RunVariant): boolean {
  const { harnessConnectionId, sandboxConnectionId } = credentials;
  return (
    names.model === model &&
    (names.harness ?? harnessConnectionId) === harnessConnectionId &&
    (names.sandbox ?? sandboxConnectionId) === sandboxConnectionId
  );
}

/**
 * Finds the variant that a run record names in the configuration, or what the configuration lacks. Connection
 * ids are looked up by their configured names. If the record names no profile, the harness's configured
 * profile is used.
 */
export function knownVariant(
  names: RunVariant | undefined,
  config: Config,
  harnesses: readonly HarnessOffer[],
): PlannedVariant | string {
  if (!names?.harness) return 'its variant names no harness';
  const { model, userModel } = names;
  const harness = ownName(names.harness, config.connections.harness);
  const sandbox = names.sandbox ? ownName(names.sandbox, config.connections.sandbox) : 'local';
  const profile = names.profile || config.daemon.profiles[harness];
  const issues: string[] = [];
  const source = {
    model,
    harness,
    sandbox,
    ...(profile && { profile }),
    ...(userModel && { userModel }),
  };
  // Found runs have no simulated user, because a run record has no field for one.
  const surroundings = { config, harnesses, meetsUser: false };
  const offered = harnesses.some(({ name }) => name === harness);
  const variant = plannedVariant(source, surroundings, (key, message) => {
    // A run's record seldom names a profile.
    const remedy =
      key === 'harness' && offered ? `: name one as daemon.profiles.${harness} in offsite.yaml` : '';
    issues.push(`${key}: ${message}${remedy}`);
  });
  return variant && issues.length === 0 ? variant : issues.join('; ');
}

/** The name that is configured for a connection id; the id itself if there is none. */
export function ownName(id: string, connections: Readonly<Record<string, string>>): string {
  return Object.keys(connections).find((name) => connections[name] === id) ?? id;
}
