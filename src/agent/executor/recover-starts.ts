import { isDeepStrictEqual } from 'node:util';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { platformService } from '../../ledger/platform.ts';
import type { OpenStart } from '../../ledger/starts.ts';
import type { OpenPlatformRun, PlatformTrials } from '../../service/platform.ts';
import { startRequest } from '../../suite/plan.ts';
import { recordBatch } from '../start-batch.ts';
import { type KnownPlan, readPlan } from '../stored-plan.ts';

/**
 * Finds the batches of commands that died after the service had started the batch and before the ledger knew
 * its id. The plans of these batches say more than the requests, so the batches must not run without their
 * plans.
 */
export function recoverStarts(platform: Pick<PlatformTrials, 'openRuns'>, ledger: Ledger): void {
  for (const start of ledger.starts.open()) {
    if (start.service !== platformService) continue;
    using lock = ledger.takeLock(start.lock);
    // The command that began this start still runs.
    if (!lock) continue;
    const known = planOf(start, ledger);
    if (!known) continue;
    const runs = Map.groupBy(platform.openRuns(), ({ batchId }) => batchId);
    const [found] = [...runs].filter(
      ([id, ofBatch]) => !ledger.batches.has(platformService, id) && fits(ofBatch, known),
    );
    if (!found) {
      ledger.starts.unknown(start.key, 'the service has no such batch');
      continue;
    }
    const [id, ofBatch] = found;
    const started = inOrder(ofBatch).map((run, index) => {
      return { id: run.id, caseId: run.case.id, variantIndex: index % known.plan.variants.length };
    });
    recordBatch(known, start, { id, runs: started }, ledger);
  }
}

/**
 * The plan of a start. If it cannot be read, returns undefined and gives the start up, so that other batches
 * can run.
 */
function planOf(start: OpenStart, ledger: Ledger): KnownPlan | undefined {
  try {
    return readPlan(ledger.blobs.readJson(start.plan));
  } catch (error) {
    if (!(error instanceof OffsiteError)) throw error;
    ledger.starts.unknown(start.key, messageOf(error));
    return undefined;
  }
}

/** Whether these are all runs of a batch that was started as planned. */
function fits(runs: readonly OpenPlatformRun[], { plan, prompt }: KnownPlan): boolean {
  const { suite, cases, variants, trials } = startRequest(plan, prompt, 'platform');
  if (runs.length !== cases.length * variants.length) return false;
  return inOrder(runs).every((run, index) => {
    const sent = cases[Math.floor(index / variants.length)];
    const { model, credentials } = variants[index % variants.length] ?? {};
    return (
      run.suite.id === suite.id &&
      run.suite.prompt === prompt &&
      run.trials === trials &&
      run.variant.model === model &&
      run.variant.harness === credentials?.harnessConnectionId &&
      run.variant.sandbox === credentials?.sandboxConnectionId &&
      isDeepStrictEqual(run.case, sent)
    );
  });
}

function inOrder(runs: readonly OpenPlatformRun[]): OpenPlatformRun[] {
  return runs.toSorted((one, other) => one.taskIndex - other.taskIndex);
}
