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
  const shown = verdictOf(run, trial);
  const verdict = shown ?? 'void';
  const message = 'the ledger lost this trial, and the service shows that it has a result, but not which one';
  const at = Date.parse(run.finishedAt ?? run.startedAt ?? '') || 0;
  const { sandboxId, exitCode, filesChanged, artifacts, verifySteps } = trial;
  return {
    verdict,
    result: {
      ...{ version: recordVersion, verdict, fromService: true },
      ...(!shown && { cause: { kind: 'infrastructure', phase: 'collect', message } }),
      ...{ startedAt: at, finishedAt: at, phases: [], modelUnmeasured: true },
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
  { status, voidFields = [], verifySteps = [], validations = [] }: ServiceTrial,
): Verdict | undefined {
  if (status === 'voided' || voidFields.includes('passed')) return 'void';
  const checks = [
    ...verifySteps.map(({ exitCode }) => exitCode === 0),
    ...validations.map(({ exitCode, judgment: { score = -Infinity, threshold = -Infinity } = {} }) => {
      return exitCode === 0 && score >= threshold;
    }),
  ];
  if (checks.length > 0) return checks.every(Boolean) ? 'passed' : 'failed';
  // Without its checks, only a run whose trials all ended in the same way tells.
  if (distribution?.passed === trials.length) return 'passed';
  return distribution?.failed === trials.length ? 'failed' : undefined;
}
