import { Command } from '@commander-js/extra-typings';
import { checkedHere } from '../../api/start.ts';
import type { Client } from '../../client/client.ts';
import type { ListedRun } from '../../client/pages/page-reader.ts';
import { Forbidden, NotFound } from '../../client/refusal.ts';
import { ambiguous, fittingBatches, listRuns, onlyId } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { type OptionsOf, wholeNumber, withService } from '../options.ts';

export function rerunCommand() {
  return withService(new Command('rerun'))
    .description('queue a new run of one cell of a batch')
    .argument('<batch>', "the batch's id, or its beginning")
    .argument(
      '<cell>',
      'CASE/VARIANT, as `offsite show` has it, or CASE:VARIANT: its name in the batch of the data folder, or its id in `offsite service runs`',
    )
    .option('--trials <n>', 'how many trials (default: as many as the last run of the cell)', wholeNumber)
    .action(async (batch, cell, options) => {
      await rerun(batch, cell, options);
    });
}

type RerunOptions = OptionsOf<typeof rerunCommand>;

async function rerun(reference: string, cell: string, options: RerunOptions): Promise<void> {
  await using context = CommandContext.open(options);
  const { signal } = context.interruption();
  context.platform = checkedHere;
  const { client, platform } = await context.service();
  const ledger = context.ledgerIfAny();
  const known = ledger
    ? knownCell(ledger, reference, cell)
    : { id: reference, isHere: false, cellKey: withColon(cell) };
  const { cellKey } = known;
  // A batch that only the service has may be named by the beginning of its id.
  const last =
    options.trials === undefined || !known.isHere ? await lastRun(client, known, signal) : undefined;
  const id = last?.batchId ?? known.id;
  const trials = options.trials ?? last?.distribution?.trials ?? (last?.trials?.length || undefined);
  const answer = await client.call('evals.rerunCell', { id, cellKey, trials }, { signal });
  if (options.json) context.out.json(answer);
  else context.out.print(text`queued run ${answer.id}`);
  if (platform?.openRuns().some((run) => run.id === answer.id))
    context.note('`offsite serve` runs it, with the data folder of this command');
  else if (platform) context.note('`offsite daemon` runs it, if it watches the suite or the case');
}

interface KnownCell {
  id: string;
  /** Whether the ledger has the batch, so that the id is a whole one. */
  isHere: boolean;
  cellKey: string;
}

/** The service's id of a batch and its key of a cell, from the names that the ledger has for them. */
function knownCell(ledger: Ledger, reference: string, cell: string): KnownCell {
  const fitting = fittingBatches(ledger.records, reference);
  const id = onlyId(fitting, reference);
  const keys = fitting.flatMap(({ key }) => {
    const named = new Set(
      listRuns(ledger.records, key).flatMap(({ key: run, caseId, variant }) =>
        cell === `${caseId}:${variant}` || cell === `${caseId}/${variant}` ? [run] : [],
      ),
    );
    return ledger.batches
      .runs(key)
      .flatMap((run) =>
        named.has(run.key) && run.variantId !== undefined ? [`${run.caseId}:${run.variantId}`] : [],
      );
  });
  return { id, isHere: fitting.length > 0, cellKey: keys[0] ?? withColon(cell) };
}

/** A cell as the service writes it. `offsite show` has a slash before the variant. */
function withColon(cell: string): string {
  return cell.includes(':') ? cell : cell.replace(/\/(?=[^/]*$)/, ':');
}

/**
 * The last run of a cell, for its number of trials, which a service may require, and for the whole id of its
 * batch. Undefined if the service lists no such run.
 */
async function lastRun(client: Client, { id, cellKey }: KnownCell, signal: AbortSignal) {
  // A variant's id has no colon; a case's may.
  const colon = cellKey.lastIndexOf(':');
  const caseId = cellKey.slice(0, Math.max(0, colon));
  if (caseId === '') return undefined;
  const fitting = new Map<string, ListedRun>();
  try {
    for await (const run of client.runs({ caseId }, { signal })) {
      const { batchId } = run;
      if (batchId === undefined || run.variant?.id !== cellKey.slice(colon + 1)) continue;
      if (batchId === id) return run;
      const isMeant = batchId.startsWith(id) || batchId.startsWith(`batch_${id}`);
      if (isMeant && !fitting.has(batchId)) fitting.set(batchId, run);
    }
  } catch (error) {
    // A key that may only write can still rerun the cell, and `rerunCell` says that there is no such case.
    if (!(error instanceof Forbidden || error instanceof NotFound)) throw error;
  }
  if (fitting.size > 1) throw ambiguous('BATCH_AMBIGUOUS', `batches fit ${id}`, [...fitting.keys()]);
  const [run] = fitting.values();
  return run;
}
