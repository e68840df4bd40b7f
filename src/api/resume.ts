import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, resolve } from 'node:path';
import type { ConfigRevision } from '../agent/config-revision.ts';
import { leaveEnded } from '../agent/reconcile.ts';
import { type Resumable, resumable } from '../agent/run-set.ts';
import { type BackoffLimits, backoff, type Clock } from '../base/clock.ts';
import { inputError, OffsiteError } from '../base/offsite-error.ts';
import type { Client } from '../client/client.ts';
import type { StartResponse } from '../contract/definition.ts';
import type { RunRecord } from '../contract/record.ts';
import type { Runner } from '../harness/runner.ts';
import type { StoredBatch, StoredRun } from '../ledger/batches.ts';
import { fittingBatches, fittingRuns, folderName, onlyId } from '../ledger/find.ts';
import { fleetLock } from '../ledger/fleet-tasks.ts';
import { refuseForeign } from '../ledger/foreign-batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { platformService } from '../ledger/platform.ts';
import { lockOfSet, type StoredSet } from '../ledger/sets.ts';
import type { OpenStart } from '../ledger/starts.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import { configBeside } from '../suite/find-config.ts';
import { type ModelConfig, whereOf } from '../suite/model-config.ts';
import type { SuitePlan } from '../suite/plan.ts';
import { findModel } from '../suite/planned-variant.ts';
import { type Printable, text } from '../text/printable.ts';
import { passedEnvironment, refuseKeys } from '../trial/prepare/environment.ts';
import { checkModels } from '../trial/run/models.ts';

/**
 * The batches and sets to resume. A batch or run that is named gets the trials back that were canceled.
 * Throws an `input` error for a batch that cannot be resumed.
 */
export function chosenToResume(ledger: Ledger, service: string, reference: string | undefined): Resumable[] {
  const own = reference === undefined ? undefined : ownBatch(ledger, service, reference);
  if (own) ledger.queue.takeBack(ledger.queue.canceled(own.batch.key, own.run?.key), 'a person took it back');
  return chosen(ledger, service, own?.run ? own.batch.id : reference);
}

/**
 * The file of the suite whose configuration resumes what a reference means, or all that is unfinished.
 * Undefined if several suites have configurations of their own: a command has one.
 */
export function suiteToResume(ledger: Ledger, reference: string | undefined): string | undefined {
  const [first, ...others] = meantBy(reference, ledger).flatMap(({ file }) => file ?? []);
  if (first === undefined) return undefined;
  const own = configBeside(first);
  return others.every((file) => configBeside(file) === own) ? first : undefined;
}

function meantBy(reference: string | undefined, ledger: Ledger): { file: string | undefined }[] {
  const { batches, sets, starts } = ledger;
  if (reference === undefined) return [...batches.open(), ...starts.open(), ...sets.open()];
  const { set, found, runs } = meantIn(ledger, reference);
  return [...(set ? [set] : []), ...found, ...runs.map(({ batch }) => batches.byKey(batch))];
}

/** What a reference means in the ledger: a set by its id, else the batches that it fits, else the runs. */
function meantIn({ sets, records }: Ledger, reference: string) {
  const set = sets.find(reference);
  const found = set ? [] : fittingBatches(records, reference);
  const runs = set || found.length > 0 ? [] : fittingRuns(records, reference);
  return { set, found, runs };
}

/** What a command ends: all of it, or only one run of a batch. */
export interface ToAbandon {
  what: Resumable;
  run: StoredRun | undefined;
}

/** The batch, set or run to abandon. Changes nothing. Throws as {@link chosenToResume} does. */
export function chosenToAbandon(ledger: Ledger, service: string, reference: string): ToAbandon[] {
  const own = ownBatch(ledger, service, reference);
  if (own?.run === undefined && (!own || ledger.queue.canceled(own.batch.key).length === 0))
    return chosen(ledger, service, reference).map((what) => ({ what, run: undefined }));
  const { batch, run } = own;
  const isOver = run && !ledger.queue.ofBatch(batch.key).some((one) => one.run === run.key && !one.result);
  if (isOver && ledger.queue.canceled(batch.key, run.key).length === 0)
    throw nothing(`run ${run.id} has no open trial`, `Its batch is ${batch.id}.`);
  return [{ what: { kind: 'batch', batch }, run }];
}

/**
 * The batch of this service that an id means, or that has the run that it means. Undefined if several fit,
 * for a batch of a set, and for what the ledger has no plan of or a fleet works on.
 */
function ownBatch(
  ledger: Ledger,
  service: string,
  reference: string,
): { batch: StoredBatch; run: StoredRun | undefined } | undefined {
  const { batches, sets } = ledger;
  const isOwn = (batch: StoredBatch) =>
    batch.service === service && batch.plan !== undefined && batch.lock !== fleetLock;
  const { found, runs } = meantIn(ledger, reference);
  const run = only(runs.filter((one) => isOwn(batches.byKey(one.batch))));
  const batch = run ? batches.byKey(run.batch) : found.find(isOwn);
  const isAlone = batch && found.every(({ id }) => id === batch.id) && !sets.ofBatch(batch.key);
  return isAlone ? { batch, run } : undefined;
}

function only<One>(all: readonly One[]): One | undefined {
  return all.length === 1 ? all[0] : undefined;
}

function chosen(ledger: Ledger, service: string, reference: string | undefined): Resumable[] {
  const open = resumable(ledger, service);
  if (reference === undefined) {
    if (open.length === 0) refuseElsewhere(ledger, service);
    return open;
  }
  const meant = meantIn(ledger, reference);
  const { found } = meant;
  const alone = only(found);
  const set = meant.set ?? (alone && ledger.sets.ofBatch(alone.key));
  if (set) return chosenSet(set, open, service);
  const id = onlyId(found, reference);
  const named = open.filter((one) => one.kind === 'batch' && one.batch.id === id);
  if (named.length > 0) return named;
  const elsewhere = found.find((batch) => batch.service !== service);
  if (elsewhere) refuseForeign(elsewhere, 'resumed');
  if (elsewhere?.service === platformService) throw platformsBatch(`batch ${id} is a platform batch`);
  if (elsewhere)
    throw nothing(`batch ${id} is of the service ${elsewhere.service}, not of ${service}`, configureIt);
  if (found.some((batch) => batch.plan === undefined && batch.state === 'open'))
    throw nothing(
      `batch ${id} was found at the service`,
      '`offsite daemon` of this data folder runs it; if it is paused, `offsite daemon resume` lets it continue.',
    );
  if (found.length > 0) throw nothing(`batch ${id} is finished`, reported);
  const run = only(meant.runs);
  if (run) throw nothing(`${run.id} is a run`, `Name its batch: ${ledger.batches.byKey(run.batch).id}`);
  throw nothing(
    `${folderName(ledger.records)} has no ${id.startsWith('run_') ? 'run' : 'batch'} ${id}`,
    /\.ya?ml$/.test(id)
      ? 'Name a batch, not a file of a suite. Without a name, all unfinished batches are resumed.'
      : '`offsite data batches` lists those that it has. --data-folder names another folder.',
  );
}

const configureIt = 'Configure that service.';
const reported = '`offsite data outbox` shows whether all of it is reported.';

function nothing(message: string, hint: string): OffsiteError {
  return inputError('NOTHING_TO_RESUME', message, { hint });
}

/** Trials of runs that the daemon of this data folder found, and that a person canceled. */
export interface CanceledHere {
  /** The service's id of the batch, or of the run. */
  id: string;
  name: string;
  trials: StoredTrial[];
}

/** What was canceled of the found runs of a batch, or of one found run. Undefined if nothing was. */
export function canceledHere(ledger: Ledger, service: string, reference: string): CanceledHere | undefined {
  const { batches, queue } = ledger;
  const meant = meantIn(ledger, reference);
  const isOwn = (batch: StoredBatch) => batch.service === service;
  const [batch, ...others] = meant.found.filter(isOwn);
  const run = only(meant.runs.filter((one) => isOwn(batches.byKey(one.batch))));
  const of = batch?.key ?? run?.batch;
  if (of === undefined || others.length > 0) return undefined;
  const trials = queue.canceled(of, run?.key, 'found');
  const id = (batch ?? run)?.id ?? reference;
  return trials.length === 0 ? undefined : { id, name: `${batch ? 'batch' : 'run'} ${id}`, trials };
}

/**
 * Queues again what was canceled of found runs, without what the service has ended since. Resolves with these
 * trials. Throws an `input` error if there are none, as for a batch that is finished.
 */
export async function takeBackOpen(
  { name, trials }: CanceledHere,
  { ledger, client }: { ledger: Ledger; client: Client },
  signal: AbortSignal,
): Promise<StoredTrial[]> {
  const ended = new Set(await leaveEnded(trials, { ledger, client }, signal));
  const open = trials.filter((trial) => !ended.has(trial));
  ledger.queue.takeBack(open, 'a person took it back');
  if (open.length > 0) return open;
  const hint = `The service shows how its trials ended: offsite service runs ${trials[0]?.batchId}`;
  throw nothing(`${name} is finished: nothing is left to run`, hint);
}

function chosenSet(set: StoredSet, open: readonly Resumable[], service: string): Resumable[] {
  const found = open.filter((one) => one.kind === 'set' && one.set.key === set.key);
  if (found.length > 0) return found;
  if (set.service === service) throw nothing(`${set.id} is finished`, reported);
  throw nothing(`${set.id} is of the service ${set.service}, not of ${service}`, configureIt);
}

/**
 * Throws if all unfinished batches belong to other services. Without a configuration, a command uses the
 * embedded service, which knows no batch of another service.
 */
function refuseElsewhere(ledger: Ledger, service: string): void {
  const all = [...ledger.batches.open(), ...ledger.starts.open(), ...ledger.sets.open()];
  const elsewhere = [...new Set(all.map((one) => one.service))].filter((name) => name !== service);
  if (elsewhere.length === 0) return;
  if (elsewhere.every((name) => name === platformService))
    throw platformsBatch('the unfinished batches are platform batches');
  const others = `the unfinished batches belong to ${elsewhere.join(', ')}`;
  throw nothing(
    `nothing to resume at the service ${service}; ${others}`,
    "Name the batch's configuration (--config, OFFSITE_CONFIG) or its service (OFFSITE_URL).",
  );
}

function platformsBatch(message: string): OffsiteError {
  return nothing(message, '`offsite serve` with this data folder continues platform batches.');
}

/** What the ledger has of it. */
export function storedOf(what: Resumable): StoredSet | StoredBatch | OpenStart {
  return what.kind === 'set' ? what.set : what.kind === 'batch' ? what.batch : what.start;
}

/** The lock that a process holds which works on it; undefined for what an older Offsite started. */
export function lockOf(what: Resumable): string | undefined {
  return what.kind === 'set'
    ? lockOfSet(what.set.id)
    : (what.kind === 'batch' ? what.batch : what.start).lock;
}

/** `another process works on batch 1: process 4711, since …`: what is known of the holder of its lock. */
export function atWorkText(name: string, lock: string | undefined, ledger: Ledger): string {
  const holder = lock === undefined ? undefined : ledger.lockHolder(lock);
  const atWork = `another process works on ${name}`;
  if (!holder) return atWork;
  const { pid, host, since } = holder;
  return `${atWork}: process ${pid}${host === hostname() ? '' : ` on ${host}`}, since ${new Date(since).toISOString().slice(0, 19)}Z`;
}

export function nameOf(what: Resumable): string {
  if (what.kind === 'set') return what.set.id;
  return what.kind === 'batch' ? `batch ${what.batch.id}` : `a batch of ${what.start.suite}`;
}

/**
 * Checks that everything a stored plan refers to still exists: harnesses, models and their keys. The plan
 * itself contains its profiles and sandboxes. Throws `PLAN_NEEDS_MORE`, an input error, with everything that
 * is missing, before any trial starts; also if recorded answers and live ones would mix in a batch.
 *
 * @param note called for each model that answers from another place than when the batch began
 */
export async function requirePlanned(
  { what, finished }: { what: Resumable; finished: number },
  plan: SuitePlan | undefined,
  runners: readonly Runner[],
  revision: ConfigRevision,
  note: (line: Printable) => void,
): Promise<void> {
  if (!plan) return;
  const name = nameOf(what);
  const { host, config } = revision;
  const { variants, judges, replay } = plan;
  const missing = new Set<string>();
  const attempt = async (check: () => void | Promise<void>) => {
    try {
      await check();
    } catch (error) {
      if (!(error instanceof OffsiteError)) throw error;
      missing.add(error.message);
    }
  };
  const none = { variants: [], judges: [], replay };
  const moved = new Map<string, string>();
  for (const { harness, model, modelConfig, userModel, sandbox } of variants) {
    const now = findModel(model, config);
    if (modelConfig && now && replay === undefined) {
      if ('replay' in modelConfig !== 'replay' in now) missing.add(mixedText(model, modelConfig, now));
      else if (placeOf(modelConfig) !== placeOf(now)) moved.set(model, movedText(model, modelConfig, now));
    }
    if (!runners.some((runner) => runner.name === harness)) missing.add(`there is no harness ${harness}`);
    await attempt(() =>
      checkModels({ ...none, variants: [{ model, modelConfig, userModel: undefined }] }, revision),
    );
    if (userModel !== undefined) await attempt(() => checkModels({ ...none, judges: [userModel] }, revision));
    await attempt(() => void passedEnvironment(sandbox, host));
  }
  for (const judge of judges) await attempt(() => checkModels({ ...none, judges: [judge] }, revision));
  await attempt(() => refuseKeys(plan, host));
  if (missing.size === 0) {
    for (const line of moved.values()) note(text`${name}: ${line}`);
    return;
  }
  const used = config.file === undefined ? 'without a configuration' : `with ${resolve(config.file)}`;
  throw inputError('PLAN_NEEDS_MORE', `${name} cannot be resumed ${used}:\n- ${[...missing].join('\n- ')}`, {
    hint: [
      `None of its trials started now; ${finished} had finished before.`,
      ...lookedAt(storedOf(what).file, config),
      "Name the batch's configuration (--config, OFFSITE_CONFIG) and set its keys, " +
        (what.kind === 'start'
          ? 'or run its suite again.'
          : `or give it up: offsite data abandon ${what.kind === 'set' ? what.set.id : what.batch.id}`),
    ].join(' '),
  });
}

/** Why the configuration is not the one beside the suite. */
function lookedAt(suite: string | undefined, { file, searched = [] }: ConfigRevision['config']): string[] {
  const none = file === undefined ? [`No offsite.yaml is in ${searched.join(', ')}.`] : [];
  if (suite === undefined) return none;
  if (!existsSync(suite)) return [`Its suite ${suite} is not there any more.`, ...none];
  const own = configBeside(suite);
  const isOther = own !== undefined && (file === undefined || resolve(own) !== resolve(file));
  return isOther ? [...none, `Beside its suite is ${own}.`] : none;
}

/** Where a model answers from, the same in each clone of a repository. */
function placeOf(model: ModelConfig): string {
  return 'baseUrl' in model ? model.baseUrl : basename(whereOf(model));
}

function mixedText(name: string, before: ModelConfig, now: ModelConfig): string {
  return `${movedText(name, before, now)}: recorded and live answers do not mix in a batch`;
}

function movedText(name: string, before: ModelConfig, now: ModelConfig): string {
  return `the model ${name} answered from ${placeOf(before)} when the batch began, and answers from ${placeOf(now)} now`;
}

/** Milliseconds between two looks at the service. */
const waits: BackoffLimits = { first: 1_000, longest: 15_000 };

/** The results of a batch that a service ran, as it reports them. */
export interface PlatformSummary {
  batchId: string;
  service: string;
  passed: number;
  failed: number;
  void: number;
  /** Passed of scored trials, 0 to 1; absent if no trial was scored. */
  passRate: number | undefined;
  runs: PlatformRun[];
}

export interface PlatformRun {
  id: string;
  case: string;
  variant: string;
  /** As the service names it. */
  status: string;
  passed: number;
  failed: number;
  void: number;
  passRate: number | undefined;
}

interface WaitParts {
  client: Client;
  clock: Clock;
  service: string;
  /** Called whenever more trials have ended. */
  progress(ended: number): void;
}

/** Asks the service again and again until all trials of a batch are over. */
export async function waitForBatch(
  { id: batchId, runs }: StartResponse,
  { variants }: SuitePlan,
  { client, clock, service, progress }: WaitParts,
  signal: AbortSignal,
): Promise<PlatformSummary> {
  const records = new Map<string, RunRecord>();
  for (let quiet = 0, reported = 0; ; ) {
    const open = runs.filter(({ id }) => !isOver(records.get(id)));
    for (const [caseId, ofCase] of Map.groupBy(open, (run) => run.caseId)) {
      const wanted = new Set(ofCase.map(({ id }) => id));
      for await (const record of client.runs({ caseId }, { signal })) {
        // The page holds whole trials; only their counts are needed.
        if (wanted.delete(record.id)) records.set(record.id, { ...record, trials: [], setup: undefined });
        if (wanted.size === 0) break;
      }
    }
    if (runs.every(({ id }) => isOver(records.get(id)))) break;
    const ended = [...records.values()].reduce((sum, record) => sum + endedIn(record), 0);
    quiet = ended > reported ? 1 : quiet + 1;
    if (ended > reported) progress(ended);
    reported = ended;
    await clock.sleep(backoff(quiet, waits, Math.random), signal);
  }
  const found = runs.map(({ id, caseId, variantIndex }): PlatformRun => {
    const { status = '', distribution } = records.get(id) ?? {};
    const { passed = 0, failed = 0, voided = 0, passRate } = distribution ?? {};
    const variant = variants[variantIndex]?.name ?? '';
    return { id, case: caseId, variant, status, passed, failed, void: voided, passRate };
  });
  const sum = (of: 'passed' | 'failed' | 'void') => found.reduce((total, run) => total + run[of], 0);
  const [passed, failed] = [sum('passed'), sum('failed')];
  const passRate = passed + failed === 0 ? undefined : passed / (passed + failed);
  return { batchId, service, passed, failed, void: sum('void'), passRate, runs: found };
}

function isOver(record: RunRecord | undefined): boolean {
  return record?.status !== undefined && record.status !== 'queued' && record.status !== 'running';
}

function endedIn({ distribution }: RunRecord): number {
  return (distribution?.scored ?? 0) + (distribution?.voided ?? 0);
}
