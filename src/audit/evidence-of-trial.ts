import { type OpenBatch, openBatch } from '../agent/batch-run.ts';
import { specify } from '../agent/specify.ts';
import { plannedTrialSpec } from '../agent/trial-spec.ts';
import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { ReportedTrial } from '../contract/report.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { type ListedTrial, listAttempts } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { foreignService } from '../ledger/platform.ts';
import type { ListedAttempt } from '../record/attempt.ts';
import { readRecord } from '../record/read-record.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import type { Config } from '../suite/config-file.ts';
import type { HarnessOffer } from '../suite/planned-variant.ts';
import type { TrialSpec } from '../trial/spec.ts';

/** A finished trial, with what the ledger has of it. */
export interface AuditedTrial {
  trial: ListedTrial;
  record: TrialRecord;
  /** Undefined if none was made: the service had the result. */
  report: ReportedTrial | undefined;
  attempts: ListedAttempt[];
  /** What was to be done, from definition and setup; or why that is not known. */
  spec: TrialSpec | string;
  /** The same from the definition alone. Undefined for a run that somebody else planned. */
  planned?: TrialSpec | undefined;
}

export interface DefinitionParts {
  ledger: Ledger;
  config: Config;
  harnesses: readonly HarnessOffer[];
}

/**
 * Says what a trial of a batch was to do.
 *
 * @param batch its `plan` may be another one than the ledger runs
 */
export function definitionOf(batch: StoredBatch, parts: DefinitionParts) {
  const { ledger, config, harnesses } = parts;
  let open: OpenBatch | undefined;
  const planOf = () => {
    open ??= openBatch(batch, ledger);
    return open;
  };
  return async ({ key }: ListedTrial): Promise<Pick<AuditedTrial, 'spec' | 'planned'>> => {
    const queued = ledger.queue.trial(key);
    if (!queued) throw new Error(`the ledger lists trial ${key} and does not have it`);
    if (queued.origin === 'found' && batch.service === foreignService)
      return { spec: 'its run was not planned with the batch' };
    try {
      const given = { ledger, batches: { planOf }, harnesses, revision: { config } };
      const specified = await specify(queued, given, async () => undefined);
      if (specified.kind !== 'ready') return { spec: specified.reason };
      const { plan, runs } = queued.origin === 'planned' ? planOf() : { plan: undefined, runs: [] };
      const run = runs.find((one) => one.key === queued.run);
      const { ordinal } = queued;
      return { spec: specified.spec, planned: plan && run && plannedTrialSpec(plan, { ...run, ordinal }) };
    } catch (error) {
      // A plan from elsewhere may have anything in it.
      return { spec: `its definition cannot be read: ${messageOf(error)}` };
    }
  };
}

/** What the ledger has of a trial, or why its record cannot be read. */
export async function auditedTrial(
  trial: ListedTrial,
  ledger: Ledger,
  specOf: ReturnType<typeof definitionOf>,
): Promise<AuditedTrial | string> {
  try {
    const record = readRecord(ledger.blobs.readJson(trial.result ?? ''));
    const report = ledger.outbox.blobOf(trial.key) !== undefined ? ledger.outbox.body(trial.key) : undefined;
    const attempts = listAttempts(ledger.records, trial.key);
    return { trial, record, report, attempts, ...(await specOf(trial)) };
  } catch (error) {
    if (error instanceof OffsiteError || error instanceof SyntaxError) return messageOf(error);
    throw error;
  }
}
