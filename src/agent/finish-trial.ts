import { type BackoffLimits, backoff, type Clock } from '../base/clock.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import { defects } from '../bounds/anyone.ts';
import { spentMessage } from '../gateway/budget.ts';
import type { BudgetAccount } from '../gateway/gateway.ts';
import type { TrialKey } from '../ledger/batches.ts';
import type { CrashCount } from '../ledger/crashes.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { BegunAttempt } from '../record/attempt.ts';
import type { Cause, PhaseName } from '../record/cause.ts';
import { type TrialRecord, voidRecord } from '../record/trial-record.ts';
import type { TrialParts } from '../trial/phase.ts';
import type { Sandboxes } from '../trial/prepare/sandboxes.ts';
import { finishedTrial } from '../trial/report.ts';
import { runTrial } from '../trial/run-trial.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { Admission } from './admission.ts';
import { type Lease, NotClaimed, noLease } from './claims.ts';
import type { Seat } from './engines/engines.ts';
import type { AttemptEvent, WorkerParts } from './worker/worker-parts.ts';

/** What the attempts of a trial need: what it works with, of its worker, and its way to a permit. */
export type AttemptParts = TrialParts &
  Pick<WorkerParts, 'ledger' | 'random' | 'attempts' | 'patienceMs'> & {
    admission: Admission;
    seat: Pick<Seat, 'enter'>;
    /**
     * Claims the trial for an attempt that has its permit. Rejects with `NotClaimed` if the trial must not
     * run now. If not given, nobody else can run the trial.
     */
    claim?: ((signal: AbortSignal) => Promise<Lease>) | undefined;
  };

export interface AttemptSignals {
  /** Cancels the trial. */
  signal: AbortSignal;
  /** Stops further attempts from starting, and lets a running attempt end. */
  admitted: AbortSignal;
}

/** Milliseconds between attempts. */
const waits: BackoffLimits = { first: 1_000, longest: 30_000 };

/**
 * Runs a trial until it has a final result, and stores that in the ledger with its report. If the
 * infrastructure or the model makes an attempt fail, the attempt is kept and the trial is retried, up to a
 * limit. A failing agent is never retried. Rejects if the result cannot be stored, if no trial may start, if
 * a signal aborts, and with `NotClaimed` if another agent has the trial; the caller queues the trial again
 * then.
 *
 * @param begun called when an attempt has its permit and its claim, before it takes the trial's sandbox
 */
export async function finishTrial(
  spec: TrialSpec,
  key: TrialKey,
  parts: AttemptParts,
  signals: AttemptSignals,
  observe: (event: AttemptEvent) => void,
  begun: () => void = () => undefined,
): Promise<TrialRecord> {
  const { ledger, clock, random, attempts } = parts;
  for (let failed = ledger.trials.failedAttempts(key); ; ) {
    const last = failed + 1 >= attempts;
    const attempted = await attemptTrial(spec, key, { ...parts, last }, signals, observe, begun);
    if (attempted.kind === 'stands') return attempted.result;
    observe({ kind: 'retried', attempt: attempted.attempt.number, message: attempted.cause.message });
    // While the engine is down, or the model cannot be reached, trials wait and no further attempt counts.
    if (attempted.kind === 'outage') continue;
    failed++;
    await clock.sleep(backoff(failed, waits, random), signals.admitted);
  }
}

type Attempted =
  | { kind: 'stands'; result: TrialRecord }
  | { kind: 'failed' | 'outage'; attempt: BegunAttempt; cause: Cause };

async function attemptTrial(
  spec: TrialSpec,
  key: TrialKey,
  parts: AttemptParts & { last: boolean },
  { signal, admitted }: AttemptSignals,
  observe: (event: AttemptEvent) => void,
  begun: () => void,
): Promise<Attempted> {
  const { ledger, seat, claim } = parts;
  // A trial that does not run needs neither engine nor model.
  const enter = () => seat.enter(parts.admission, admitted, parts.gateway.limitOf(spec.model));
  using passage = isStopped(ledger, key) ? undefined : await enter();
  const stopped = isStopped(ledger, key);
  const given = stopped
    ? resultOfStopped(spec, parts)
    : (resultWithoutBudget(spec, parts) ?? crashedTooOften(ledger.crashes.of(key), parts.clock.now()));
  using lease = claim ? await claim(admitted) : noLease();
  const attempt = ledger.trials.beginAttempt(key);
  if (!given) begun();
  const leased = AbortSignal.any([signal, lease.lost]);
  const result = given ?? (await runAttempt(spec, attempt, parts, leased, observe));
  const failure = given ? undefined : failureOf(result);
  // Further attempts would find nobody either. Who waits without end waits for the model to be started.
  const absent =
    failure !== undefined && Number.isFinite(parts.patienceMs) && parts.gateway.isAbsent(modelsOf(spec));
  const isUnreachable = parts.gateway.isUnreachable(spec.model);
  const outage =
    !absent &&
    failure !== undefined &&
    (await passage?.failed(failure, result.models, isUnreachable, signal)) === true;
  if (failure && (outage || !(parts.last || absent))) {
    await ledger.trials.abandonAttempt(attempt, outage ? 'outage' : 'void', failure, result);
    await ledger.workspaces.discard(result.left);
    return { kind: outage ? 'outage' : 'failed', attempt, cause: failure };
  }
  // If the trial did not call its model, it does not show that the model works.
  if (!failure && !given && result.cause?.kind !== 'harness') passage?.worked();
  // The next trial runs while the disk syncs this result. One that is void may stop its variant.
  if (result.verdict !== 'void') passage?.[Symbol.dispose]();
  await confirmLease(lease, attempt, result, parts, signal);
  await storeResult(
    () => ledger.trials.finish(attempt, finishedTrial(result, spec, attempt, lease.number)),
    { ...parts, note: (message) => observe({ kind: 'unstored', message }) },
    signal,
  );
  lease.settle();
  observe({ kind: 'finished', result });
  if (result.left?.kind === 'archive') await ledger.workspaces.free(parts.keep?.budget ?? 0);
  const isBroken = !stopped && result.cause?.kind === 'harness';
  const position = isBroken ? ledger.trials.brokenHarnesses(key).indexOf(key) + 1 : 0;
  const message = brokenHarnessWarning(position, spec, result.cause);
  if (message !== undefined) observe({ kind: 'broken-harness', position, message });
  return { kind: 'stands', result };
}

/** All models that a trial may ask. */
function modelsOf({ model, user, judges }: TrialSpec): string[] {
  return [model, ...(user ? [user.model] : []), ...judges];
}

/** Rejects if another agent has the trial; the attempt keeps what it found then, and is not reported. */
async function confirmLease(
  lease: Lease,
  attempt: BegunAttempt,
  result: TrialRecord,
  { ledger }: AttemptParts,
  signal: AbortSignal,
): Promise<void> {
  try {
    await lease.confirm(signal);
  } catch (error) {
    const cause = { kind: 'infrastructure', message: messageOf(error) };
    await ledger.trials.abandonAttempt(attempt, 'lost', cause, result);
    throw error;
  }
}

async function runAttempt(
  spec: TrialSpec,
  attempt: BegunAttempt,
  parts: AttemptParts,
  signal: AbortSignal,
  observe: (event: AttemptEvent) => void,
): Promise<TrialRecord> {
  const { ledger } = parts;
  try {
    const onPhase = (phase: PhaseName) => observe({ kind: 'phase', phase });
    return await ledger.crashes.within(attempt.key, () => runTrial(spec, parts, signal, onPhase));
  } catch (error) {
    const ending = error instanceof NotClaimed ? 'lost' : signal.aborted ? 'canceled' : 'void';
    await ledger.trials.abandonAttempt(attempt, ending);
    throw error;
  }
}

/** Why an attempt failed through no fault of the agent's; undefined if the result is final. */
function failureOf({ verdict, cause }: TrialRecord): Cause | undefined {
  if (verdict !== 'void') return undefined;
  const { kind, phase } = cause ?? {};
  // A harness that ended before anybody could say why: no agent is known to have acted.
  const isOpen = kind === 'unknown' && phase === 'harness';
  return kind === 'infrastructure' || kind === 'model' || isOpen ? cause : undefined;
}

/** How often we try to store a finished result, the first try included. */
const tries = 5;

/** Milliseconds between the tries. */
const storeWaits: BackoffLimits = { first: 1_000, longest: 8_000 };

/**
 * Stores a finished result on disk. If that fails, the result stays in memory and is tried again a few times,
 * because space may become free. Calls `note` before each further try. Rejects with the last error.
 */
async function storeResult(
  store: () => Promise<void>,
  { clock, random, note }: { clock: Clock; random: () => number; note: (message: string) => void },
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await store();
    } catch (error) {
      // Waiting does not help against a bug in Offsite.
      if (!(error instanceof OffsiteError) || attempt >= tries || signal.aborted) throw error;
      note(`the result cannot be stored and is kept in memory: ${messageOf(error)}`);
    }
    await clock.sleep(backoff(attempt, storeWaits, random), signal);
  }
}

/**
 * If the harness did not work in this many trials of a variant in a batch, the variant's other trials do not
 * run.
 */
const mostBroken = 3;

/** How many first and last lines of a harness's output a warning shows: the reason, and the end. */
const firstLines = 4;
const lastLines = 8;

/**
 * Whether a trial must not run because its variant is stopped. Only the ledger decides this, so a resumed
 * batch decides the same.
 */
function isStopped(ledger: Ledger, trial: TrialKey): boolean {
  return ledger.trials.hasBrokenHarnesses(trial, mostBroken);
}

/**
 * The void result of a trial whose batch has no budget left when the trial begins; undefined for any other
 * trial. The trial is void because what other trials spent says nothing about its agent.
 */
function resultWithoutBudget(
  spec: TrialSpec,
  parts: { clock: Clock; sandboxes: Sandboxes; budgets: { batch: BudgetAccount | undefined } },
): TrialRecord | undefined {
  const { batch } = parts.budgets;
  const asksModel = spec.modelConfig !== undefined && spec.replay === undefined;
  const spent = batch && asksModel ? spentMessage(batch, parts.clock) : undefined;
  if (spent === undefined) return undefined;
  return notRun(spec, parts, { kind: 'infrastructure', phase: 'sandbox', message: `not run: ${spent}` });
}

/** The result of a trial that does not run. Gives up the sandbox that was started ahead for it. */
function resultOfStopped(spec: TrialSpec, parts: { clock: Clock; sandboxes: Sandboxes }): TrialRecord {
  const failure = `${spec.harness} ended with an error before it asked its model anything`;
  const message = `not run: the variant was stopped after ${mostBroken} trials in which ${failure}`;
  return notRun(spec, parts, { kind: 'harness', phase: 'harness', message });
}

function notRun(
  spec: TrialSpec,
  { clock, sandboxes }: { clock: Clock; sandboxes: Sandboxes },
  cause: Cause,
): TrialRecord {
  sandboxes.forget(spec);
  return voidRecord(clock.now(), cause, { notRun: true });
}

/**
 * The warning about a trial whose harness did not work; undefined if there is nothing new to say. The warning
 * about the first such trial of a variant says what to check, the last one that the variant is stopped.
 */
function brokenHarnessWarning(
  position: number,
  { harness, profile, model }: TrialSpec,
  cause: Cause | undefined,
): string | undefined {
  if (position === 1) {
    const printed = shown(cause?.output?.trim().split('\n') ?? []);
    const of = profile.name === undefined ? 'its profile' : `the profile ${profile.name}`;
    const check = `Check install, version, args, env and mcpServers of ${of}, and the wire of the model`;
    return [
      `warning: ${cause?.message}`,
      ...(printed.length > 0 ? ['it printed:', ...printed.map((line) => `  ${line}`)] : []),
      `such a trial is void and says nothing about ${model}. ${check}`,
    ].join('\n');
  }
  if (position === mostBroken) {
    return `${harness} did not work in ${mostBroken} trials: the other trials of this variant are not run`;
  }
  return undefined;
}

function shown(lines: readonly string[]): readonly string[] {
  if (lines.length <= firstLines + lastLines) return lines;
  return [...lines.slice(0, firstLines), '…', ...lines.slice(-lastLines)];
}

/**
 * The void result of a trial that crashed Offsite too often to be tried again; undefined for any other trial.
 */
export function crashedTooOften(
  { errors, deaths, detail }: CrashCount,
  now: number,
): TrialRecord | undefined {
  if (errors < defects.count.crashes && deaths < defects.count.deaths) return undefined;
  const where = detail === undefined ? '' : `; please report ${detail}`;
  const message =
    errors >= defects.count.crashes
      ? `Offsite itself failed ${errors} times while it ran this trial; the trial is not tried again${where}`
      : `Offsite's process died ${deaths} times while it ran this trial; the trial is not tried again`;
  // What its attempts used is lost with their processes.
  return voidRecord(now, { kind: 'infrastructure', phase: 'sandbox', message }, { modelUnmeasured: true });
}
