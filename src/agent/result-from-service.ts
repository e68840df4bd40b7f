import type { ListedRun, ServiceTrial } from '../client/pages/page-reader.ts';
import type { Verdict } from '../ledger/trials.ts';
import { recordVersion, type TrialRecord } from '../record/trial-record.ts';

/**
 * The result of a trial that the service has and this ledger lacks, for example because the ledger was
 * restored from a backup: only what the service's record shows of it.
 */
export function resultFromService(
  run: ListedRun<'results'>,
  trial: ServiceTrial,
): { verdict: Verdict; result: TrialRecord } {
  const verdict = verdictOf(run, trial);
  const at = Date.parse(run.finishedAt ?? run.startedAt ?? '') || 0;
  const { sandboxId, exitCode, filesChanged, artifacts, verifySteps } = trial;
  return {
    verdict: verdict ?? 'void',
    result: {
      version: recordVersion,
      verdict: verdict ?? 'void',
      fromService: true,
      ...(verdict === undefined && {
        cause: {
          kind: 'infrastructure',
          phase: 'collect',
          message:
            'the ledger lost this trial, and the service shows that it has a result, but not which one',
        },
      }),
      startedAt: at,
      finishedAt: at,
      phases: [],
      modelUnmeasured: false,
      ...(sandboxId !== undefined && { sandboxId }),
      ...(exitCode !== undefined && { harness: { ended: 'exited', exitCode } }),
      ...(filesChanged && { filesChanged }),
      ...(artifacts && { artifacts }),
      ...(verifySteps && {
        verifySteps: verifySteps.map((step) => ({ ...step, output: '', outputTruncated: false })),
      }),
    },
  };
}

/** Undefined if the record does not show it. */
function verdictOf(
  { distribution, trials = [] }: ListedRun<'results'>,
  trial: ServiceTrial,
): Verdict | undefined {
  const { status, voidFields = [], verifySteps, validations } = trial;
  if (status === 'voided' || voidFields.includes('passed')) return 'void';
  const checks = [
    ...(verifySteps ?? []).map(({ exitCode }) => exitCode === 0),
    ...(validations ?? []).map(({ exitCode, judgment }) => exitCode === 0 && reached(judgment)),
  ];
  if (checks.length > 0) return checks.every(Boolean) ? 'passed' : 'failed';
  // Without its checks, only a run whose trials all ended in the same way tells.
  if (distribution?.passed === trials.length) return 'passed';
  return distribution?.failed === trials.length ? 'failed' : undefined;
}

function reached(
  judgment: { score?: number | undefined; threshold?: number | undefined } | undefined,
): boolean {
  if (judgment?.threshold === undefined) return true;
  return (judgment.score ?? Number.NEGATIVE_INFINITY) >= judgment.threshold;
}
