import { createHash } from 'node:crypto';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import { TrialRecord } from '../record/trial-record.ts';
import type { StoredBatch } from './batches.ts';
import { addCarriedBatch, type CarriedTrial } from './carried-batch.ts';
import type { Ledger } from './ledger.ts';
import { completeListings } from './listings.ts';
import { foreignService } from './platform.ts';

type Named = Pick<StoredBatch, 'id' | 'service'>;

/**
 * Throws `BATCH_FOREIGN` for a batch that came from elsewhere: from evidence, or from a log.
 *
 * @param done what would be done with it: completes "cannot be ..."
 */
export function refuseForeign(batch: Named, done: string): void {
  if (batch.service === foreignService) throw refusal(batch, done, 'Offsite did not run it here');
}

/** The same only for what came from a log, which has neither a definition nor what the agent left. */
export function refuseLog(batch: Named, done: string): void {
  if (batch.service === foreignService && batch.id.startsWith(logPrefix))
    throw refusal(batch, done, 'it was imported from the log of another program');
}

function refusal({ id }: Named, done: string, why: string): OffsiteError {
  return inputError(
    'BATCH_FOREIGN',
    `batch ${id} cannot be ${done}: it is foreign, which means that ${why}`,
    { hint: `\`offsite show ${id}\` shows it, and \`offsite compare\` compares it.` },
  );
}

/** How the ids of batches from logs begin. */
const logPrefix = 'log_';

interface ImportedTrial {
  caseId: string;
  variant: string;
  ordinal: number;
  result: TrialRecord;
}

/**
 * Stores a batch that another program ran. It is there as a whole or not at all. Throws `LOG_IMPORTED` for
 * trials that are there already, and `LOG_UNREADABLE` for one with an impossible number.
 */
export async function storeForeignBatch(
  ledger: Ledger,
  { suite, startedAt }: { suite: string; startedAt: number },
  trials: AsyncIterable<ImportedTrial>,
): Promise<StoredBatch> {
  const runs = new Map<string, { caseId: string; variant: string; trials: Map<number, CarriedTrial> }>();
  const hash = createHash('sha256');
  for await (const { caseId, variant, ordinal: given, result } of trials) {
    requireReadable(result, `trial ${given} of ${caseId}`);
    const record = await ledger.blobs.putJson(result);
    hash.update(JSON.stringify([caseId, variant, given, record]));
    const key = JSON.stringify([caseId, variant]);
    const run = runs.get(key) ?? { caseId, variant, trials: new Map() };
    runs.set(key, run);
    let ordinal = given;
    while (run.trials.has(ordinal)) ordinal += 1;
    const { verdict } = result;
    const [begunAt, finishedAt] = [Math.round(result.startedAt), Math.round(result.finishedAt)];
    run.trials.set(ordinal, {
      ordinal,
      result: { verdict, record, finishedAt },
      gradings: [],
      attempts: [{ number: 1, startedAt: begunAt, endedAt: finishedAt, ending: verdict }],
    });
  }
  const id = `${logPrefix}${hash.digest('hex').slice(0, 12)}`;
  if (ledger.batches.has(foreignService, id))
    throw inputError('LOG_IMPORTED', `these trials were imported before, as ${id}`, {
      hint: `\`offsite show ${id}\` shows them.`,
    });
  const key = addCarriedBatch(ledger, {
    id,
    service: foreignService,
    suite,
    // The clock of a log may be ahead, and the last batch is not one of tomorrow.
    startedAt: Math.round(Math.min(startedAt, ledger.records.now())),
    runs: [...runs.values()].map(({ caseId, variant, trials }, index) => ({
      id: `${id}_${index}`,
      taskIndex: index,
      caseId,
      caseName: caseId,
      variant,
      details: {},
      origin: 'planned',
      trials: [...trials.values()],
    })),
  });
  completeListings(ledger, key);
  return ledger.batches.byKey(key);
}

/** Numbers of a log can add up to one that JSON does not have: nobody could read that record again. */
function requireReadable(result: TrialRecord, name: string): void {
  const [issue] = TrialRecord.safeParse(result).error?.issues ?? [];
  if (!issue) return;
  throw inputError('LOG_UNREADABLE', `${name} cannot be stored: ${issue.path.join('.')}: ${issue.message}`, {
    hint: 'Nothing was imported. Its log has a number that cannot be.',
  });
}
