import type { Ledger, TrialKey } from '../ledger/ledger.ts';
import { reportOf } from '../trial/report.ts';
import type { PhaseName, TrialResult } from '../trial/result.ts';
import { runTrial, type TrialParts } from '../trial/run-trial.ts';
import type { TrialSpec } from '../trial/spec.ts';

export type AttemptEvent =
  | { kind: 'phase'; phase: PhaseName }
  | { kind: 'retried'; attempt: number; message: string }
  | { kind: 'finished'; result: TrialResult };

/** Attempts of a trial whose infrastructure fails; an agent that fails is never run again. */
const attempts = 2;

/**
 * Runs a trial until it has a result that stands, and keeps that in the ledger with its report. Rejects where it cannot be kept, and
 * where `signal` aborts; the trial is queued again then.
 */
export async function finishTrial(
  spec: TrialSpec,
  key: TrialKey,
  parts: Omit<TrialParts, 'blobs'> & { ledger: Ledger },
  signal: AbortSignal,
  observe: (event: AttemptEvent) => void,
): Promise<TrialResult> {
  const { ledger } = parts;
  for (;;) {
    signal.throwIfAborted();
    const attempt = ledger.beginAttempt(key);
    let result: TrialResult;
    try {
      const onPhase = (phase: PhaseName) => observe({ kind: 'phase', phase });
      result = await runTrial(spec, { ...parts, blobs: ledger.blobs }, signal, onPhase);
    } catch (error) {
      ledger.abandonAttempt(attempt, 'canceled', undefined);
      throw error;
    }
    const { verdict, cause } = result;
    if (verdict === 'void' && cause?.kind === 'infrastructure' && attempt.number < attempts) {
      ledger.abandonAttempt(attempt, 'void', cause);
      observe({ kind: 'retried', attempt: attempt.number, message: cause.message });
      continue;
    }
    const report = reportOf(result, {
      caseName: spec.caseName,
      taskIndex: spec.taskIndex,
      ordinal: spec.ordinal,
      model: spec.model,
      sessionId: `${spec.runId}/${spec.ordinal}/${attempt.number}`,
    });
    await ledger.finishTrial(attempt, { verdict, cause, result, report });
    observe({ kind: 'finished', result });
    return result;
  }
}
