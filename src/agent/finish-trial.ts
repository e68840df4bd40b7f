import { type BackoffLimits, backoff } from '../backoff.ts';
import type { Clock } from '../clock.ts';
import type { TrialKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Attempt } from '../ledger/trials.ts';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import { reportOf } from '../trial/report.ts';
import type { Cause, PhaseName, TrialResult } from '../trial/result.ts';
import { runTrial } from '../trial/run-trial.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { TrialParts } from '../trial/trial-parts.ts';
import type { Admission } from './admission.ts';
import type { Circuits } from './circuits.ts';
import { crashedTooOften, isStopped, resultOfStopped, tellBrokenHarness } from './not-run.ts';

export type AttemptEvent =
  | { kind: 'phase'; phase: PhaseName }
  | { kind: 'retried'; attempt: number; message: string }
  /** It is finished, and cannot be stored yet. */
  | { kind: 'unstored'; message: string }
  /** Its harness did not work, as so many of its variant's before it did not; `place` counts it. */
  | { kind: 'broken-harness'; place: number; told: string }
  | { kind: 'finished'; result: TrialResult };

/** What attempts of a trial need. */
export interface AttemptParts extends Omit<TrialParts, 'blobs'> {
  ledger: Ledger;
  admission: Admission;
  circuits: Circuits;
  clock: Clock;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** Attempts of a trial that fails through no fault of the agent's. */
  attempts: number;
}

export interface AttemptSignals {
  /** Cancels the trial. */
  signal: AbortSignal;
  /** Keeps a further attempt from beginning, and lets one that runs come to its end. */
  admitted: AbortSignal;
}

/** Milliseconds between attempts. */
const waits: BackoffLimits = { first: 1_000, longest: 30_000 };

/**
 * Runs a trial until it has a result that stands, and keeps that in the ledger with its report. An attempt
 * that infrastructure or model have spoilt is kept, and another is made, up to a limit; an agent that fails
 * is never run again. Rejects where the result cannot be kept, where no trial may be begun, and where a
 * signal aborts; the trial is queued again then.
 *
 * @param begun called when an attempt has its place, with the trial's sandbox not yet taken
 */
export async function finishTrial(
  spec: TrialSpec,
  key: TrialKey,
  parts: AttemptParts,
  signals: AttemptSignals,
  observe: (event: AttemptEvent) => void,
  begun: () => void = () => undefined,
): Promise<TrialResult> {
  const { ledger, clock, random, attempts } = parts;
  for (let failed = ledger.trials.failedAttempts(key); ; ) {
    const last = failed + 1 >= attempts;
    const attempted = await attemptTrial(spec, key, { ...parts, last }, signals, observe, begun);
    if (attempted.kind === 'stands') return attempted.result;
    observe({ kind: 'retried', attempt: attempted.attempt.number, message: attempted.cause.message });
    // While everything is down trials wait for that, and no attempt counts.
    if (attempted.kind === 'outage') continue;
    failed++;
    await clock.sleep(backoff(failed, waits, random), signals.admitted);
  }
}

type Attempted =
  | { kind: 'stands'; result: TrialResult }
  | { kind: 'spoilt' | 'outage'; attempt: Attempt; cause: Cause };

async function attemptTrial(
  spec: TrialSpec,
  key: TrialKey,
  parts: AttemptParts & { last: boolean },
  { signal, admitted }: AttemptSignals,
  observe: (event: AttemptEvent) => void,
  begun: () => void,
): Promise<Attempted> {
  const { ledger, circuits } = parts;
  // One that is not run needs neither engine nor model.
  using passage = isStopped(ledger, key) ? undefined : await circuits.enter(spec, parts.admission, admitted);
  const stopped = isStopped(ledger, key);
  const given = stopped
    ? resultOfStopped(spec, parts)
    : crashedTooOften(ledger.crashes.of(key), parts.clock.now());
  const attempt = ledger.trials.beginAttempt(key);
  if (!given) begun();
  const result = given ?? (await runAttempt(spec, attempt, parts, signal, observe));
  const spoilt = given ? undefined : spoiltBy(result);
  const outage = spoilt !== undefined && (await passage?.failed(spoilt, result.models, signal)) === true;
  if (spoilt && (outage || !parts.last)) {
    await ledger.trials.abandonAttempt(attempt, outage ? 'outage' : 'void', spoilt, result);
    return { kind: outage ? 'outage' : 'spoilt', attempt, cause: spoilt };
  }
  // A model that nobody asked is not known to work.
  if (!spoilt && !given && result.cause?.kind !== 'harness') passage?.worked();
  const report = reportOf(result, {
    caseName: spec.caseName,
    taskIndex: spec.taskIndex,
    ordinal: spec.ordinal,
    model: spec.model,
    sessionId: `${spec.runId}/${spec.ordinal}/${attempt.number}`,
  });
  const { verdict, cause } = result;
  await storeResult(
    () => ledger.trials.finish(attempt, { verdict, cause, result, report }),
    { ...parts, note: (message) => observe({ kind: 'unstored', message }) },
    signal,
  );
  observe({ kind: 'finished', result });
  const place = stopped ? 0 : ledger.trials.brokenHarnesses.place(key);
  const told = tellBrokenHarness(place, spec, cause);
  if (told !== undefined) observe({ kind: 'broken-harness', place, told });
  return { kind: 'stands', result };
}

async function runAttempt(
  spec: TrialSpec,
  attempt: Attempt,
  parts: AttemptParts,
  signal: AbortSignal,
  observe: (event: AttemptEvent) => void,
): Promise<TrialResult> {
  const { ledger } = parts;
  try {
    const onPhase = (phase: PhaseName) => observe({ kind: 'phase', phase });
    return await ledger.crashes.within(attempt.key, () =>
      runTrial(spec, { ...parts, blobs: ledger.blobs }, signal, onPhase),
    );
  } catch (error) {
    await ledger.trials.abandonAttempt(attempt, signal.aborted ? 'canceled' : 'void');
    throw error;
  }
}

/** What spoilt an attempt that is none of the agent's doing; undefined where its result stands. */
function spoiltBy({ verdict, cause }: TrialResult): Cause | undefined {
  if (verdict !== 'void') return undefined;
  return cause?.kind === 'infrastructure' || cause?.kind === 'model' ? cause : undefined;
}

/** Tries to put a finished result on disk, the first included. */
const tries = 5;

/** Milliseconds between them. */
const storeWaits: BackoffLimits = { first: 1_000, longest: 8_000 };

/**
 * Puts a finished result on disk. Where the disk does not take it, the result stays in memory and is tried
 * again a few times: others may make room. Rejects with the last error, after saying so.
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
      // A defect of ours does not go away by waiting.
      if (!(error instanceof OffsiteError) || attempt >= tries || signal.aborted) throw error;
      note(`the result cannot be stored and is kept in memory: ${messageOf(error)}`);
    }
    await clock.sleep(backoff(attempt, storeWaits, random), signal);
  }
}
