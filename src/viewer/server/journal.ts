import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../../ledger/ledger.ts';
import { changedAfter, lastChange } from '../../ledger/trial-rows.ts';
import type { LedgerEvent } from '../model/shapes.ts';

/** Milliseconds between two looks at the journal. */
const everyMs = 1_000;
/** Changes in one event. */
const changesAtOnce = 5_000;
/** Milliseconds without a change after which a client gets a sign that the connection lives. */
const quietMs = 15_000;

/**
 * The changes of the ledger from now on, as server-sent events, until the signal aborts. Another process may
 * make them. One look costs a query by key.
 */
export async function* journalEvents(
  { records }: Ledger,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let last = lastChange(records);
  let quietSince = performance.now();
  yield ': connected\n\n';
  while (!signal.aborted) {
    await delay(everyMs, undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (signal.aborted) return;
    const changed = changedAfter(records, last, changesAtOnce);
    if (changed.last > last) {
      const event: LedgerEvent = { batches: changed.batches, trials: changed.trials };
      yield `data: ${JSON.stringify(event)}\n\n`;
      last = changed.last;
      quietSince = performance.now();
    } else if (performance.now() - quietSince > quietMs) {
      yield ': quiet\n\n';
      quietSince = performance.now();
    }
  }
}
