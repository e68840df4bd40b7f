import type { BatchHandle } from '../../fleet/batch-handle.ts';
import { type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';

/** A worker that keeps records of a batch, because the fleet has no storage. */
export interface KeptRecords {
  /** `machine/agent/trials at a time` */
  worker: string;
  /** Its data folder. */
  folder: string;
  records: number;
}

/** Who keeps the records of batches, as the workers reported to Temporal. */
export async function keptBy(batches: readonly BatchHandle[]): Promise<KeptRecords[]> {
  const kept = new Map<string, KeptRecords>();
  for (const batch of batches) {
    const seen = new Map<string, number>();
    for (;;) {
      const { results } = await batch.progress(seen);
      if (results.length === 0) break;
      for (const { summary } of results) {
        const { worker, folder } = summary;
        if (folder === undefined) continue;
        const name = JSON.stringify([worker, folder]);
        const known = kept.get(name) ?? { worker, folder, records: 0 };
        kept.set(name, { ...known, records: known.records + 1 });
      }
    }
  }
  return [...kept.values()];
}

export function keptText(kept: readonly KeptRecords[]): Printable {
  if (kept.length === 0) return text`no worker keeps records of it`;
  return stack([
    text`the fleet has no storage, so its workers keep the records:`,
    ...kept.map(({ worker, folder, records }) => text`  ${worker}  ${folder}  ${plural(records, 'record')}`),
  ]);
}
