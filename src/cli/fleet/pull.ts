import { BatchHandle } from '../../fleet/batch-handle.ts';
import { pullBatch } from '../../fleet/pull-batch.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { CommonOptions } from '../settings.ts';
import { knownBatch } from './attach.ts';
import { keptBy, keptText } from './kept-records.ts';
import { openFleet, openStorage } from './open-fleet.ts';

/** Brings the records of a batch into this data folder. Returns the exit code. */
export async function pull(id: string, options: CommonOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { out } = context;
  const storage = openStorage(context);
  if (!storage) {
    const kept = await keptBy([new BatchHandle(id, (await openFleet(context)).client)]);
    if (options.json) out.json({ batchId: id, records: 0, kept });
    else out.print(keptText(kept));
    return exitCodes.done;
  }
  const { signal } = context.interruption({ doing: () => 'stopping; what was brought stays' });
  const reporting = await context.reporting();
  const { ledger, service } = reporting;
  const known = ledger.batches.find(id).find((batch) => batch.service === service);
  const batch =
    known ??
    (
      await knownBatch(new BatchHandle(id, (await openFleet(context)).client), {
        context,
        storage,
        reporting,
      })
    ).stored;
  const records = await pullBatch(batch, { ledger, storage }, signal);
  if (options.json) out.json({ batchId: id, records });
  else out.print(text`brought ${plural(records, 'record')} of batch ${id}; offsite show ${id}`);
  return exitCodes.done;
}
