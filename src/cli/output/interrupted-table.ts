import type { Ledger } from '../../ledger/ledger.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { mergedSummary } from './merged-summary.ts';
import { storedBatch } from './stored-batch.ts';
import { summaryOf } from './summary.ts';
import { summaryTable } from './summary-table.ts';

/**
 * The table of batches that were interrupted, as far as they got, and how many trials are left. Undefined if
 * no trial has a result.
 *
 * @param ids of the batches that the command worked on
 */
export function interruptedTable(
  ids: readonly string[],
  { ledger, service }: { ledger: Ledger; service: string },
): Printable | undefined {
  const batches = ids.flatMap((id) => ledger.batches.find(id)).filter((one) => one.service === service);
  const pending = ledger.outbox.pending();
  const [first, ...more] = batches.map((batch) => summaryOf(storedBatch(ledger, batch), service, pending));
  if (!first) return undefined;
  const summary = more.length > 0 ? mergedSummary([first, ...more]) : first;
  const finished = summary.passed + summary.failed + summary.void;
  if (finished === 0) return undefined;
  const open = batches.flatMap(({ key }) => ledger.queue.ofBatch(key)).filter(({ result }) => !result);
  const left = ours(`interrupted: ${plural(finished, 'trial')} finished, ${open.length} left`);
  return stack([summaryTable(summary), text`${left}`]);
}
