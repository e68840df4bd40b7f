import { Command } from '@commander-js/extra-typings';
import { checkedHere } from '../../api/start.ts';
import type { Client } from '../../client/client.ts';
import { Forbidden } from '../../client/refusal.ts';
import { fittingBatches, listRuns, onlyId } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { wholeNumber, withService } from '../options.ts';
import type { CommonOptions } from '../settings.ts';

export function rerunCommand() {
  return withService(new Command('rerun'))
    .description('queue a new run of one cell of a batch')
    .argument('<batch>', "the batch's id; its beginning is enough for a batch of the data folder")
    .argument(
      '<cell>',
      '<case id>:<variant>: its name in the batch of the data folder, or its id in `offsite service runs`',
    )
    .option('--trials <n>', 'how many trials (default: as many as the last run of the cell)', wholeNumber)
    .action(rerun);
}

interface RerunOptions extends CommonOptions {
  trials?: number | undefined;
}

async function rerun(reference: string, cell: string, options: RerunOptions): Promise<void> {
  await using context = CommandContext.open(options);
  const { signal } = context.interruption();
  context.platform = checkedHere;
  const { client, platform } = await context.service();
  const { id, cellKey } = knownCell(context.ledger(), reference, cell);
  const trials = options.trials ?? (await lastTrials(client, { batchId: id, cellKey }, signal));
  const answer = await client.call('evals.rerunCell', { id, cellKey, trials }, { signal });
  if (options.json) context.out.json(answer);
  else context.out.print(text`queued run ${answer.id}`);
  if (platform?.openRuns().some((run) => run.id === answer.id))
    context.note('`offsite serve` runs it, with the data folder of this command');
  else if (platform) context.note('`offsite daemon` runs it, if it watches the suite or the case');
}

/** The service's id of a batch and its key of a cell, from the names that the ledger has for them. */
function knownCell(ledger: Ledger, reference: string, cell: string): { id: string; cellKey: string } {
  const fitting = fittingBatches(ledger.records, reference);
  const id = onlyId(fitting, reference);
  const [caseId, name] = partsOf(cell);
  const variantIds = fitting.flatMap(({ key }) => {
    const named = new Set(
      listRuns(ledger.records, key).flatMap((run) =>
        run.caseId === caseId && run.variant === name ? [run.key] : [],
      ),
    );
    return ledger.batches.runs(key).flatMap((run) => (named.has(run.key) ? (run.variantId ?? []) : []));
  });
  const [variantId] = variantIds;
  return { id, cellKey: variantId === undefined ? cell : `${caseId}:${variantId}` };
}

/** The case and the variant of a cell. A variant's id has no colon; a case's may. */
function partsOf(cell: string): [caseId: string, variant: string] {
  const colon = cell.lastIndexOf(':');
  return [cell.slice(0, Math.max(0, colon)), cell.slice(colon + 1)];
}

/**
 * How many trials the last run of a cell has, because a service may require the number. Undefined if the
 * service lists no such run, or not its trials.
 */
async function lastTrials(
  client: Client,
  { batchId, cellKey }: { batchId: string; cellKey: string },
  signal: AbortSignal,
): Promise<number | undefined> {
  const [caseId, variant] = partsOf(cellKey);
  if (caseId === '') return undefined;
  try {
    for await (const run of client.runs({ caseId }, { signal })) {
      if (run.batchId !== batchId || run.variant?.id !== variant) continue;
      return run.distribution?.trials ?? (run.trials?.length || undefined);
    }
  } catch (error) {
    // A key that may only write can still rerun the cell.
    if (!(error instanceof Forbidden)) throw error;
  }
  return undefined;
}
