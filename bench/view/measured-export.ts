import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { systemClock } from '../../src/base/clock.ts';
import { exportHtml } from '../../src/export/export-html.ts';
import { writeExport } from '../../src/export/write-export.ts';
import { findBatch, listTrials } from '../../src/ledger/find.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';

export interface MeasuredExport {
  export: string;
  file: string;
  exportSeconds: number;
  /** To read, compress and write the same records. */
  floorSeconds: number;
  exportMegabytes: number;
  leftOut: number;
}

/** Exports a batch as a page. */
export async function measureExport(
  ledger: Ledger,
  { name, id, folder, withOutputs }: { name: string; id: string; folder: string; withOutputs: boolean },
): Promise<MeasuredExport> {
  const batch = findBatch(ledger.records, id);
  const file = join(folder, `${id}.html`);
  const signal = new AbortController().signal;
  const parts = { ledger, redactor: new Redactor([]), now: systemClock.now(), withOutputs, signal };
  let leftOut = 0;
  const floorSeconds = await seconds(() => compressRecords(ledger, batch.key, join(folder, `${id}.gz`)));
  const exportSeconds = await seconds(() =>
    writeExport(file, async (write) => {
      ({ leftOut } = await exportHtml(batch, { ...parts, maxBytes: Number.POSITIVE_INFINITY }, write));
    }),
  );
  const { size } = await stat(file);
  return { export: name, file, exportSeconds, floorSeconds, exportMegabytes: size / 1e6, leftOut };
}

const compressed = promisify(gzip);

async function compressRecords(ledger: Ledger, batch: number, file: string): Promise<void> {
  await using handle = await open(file, 'w');
  for (const { result } of listTrials(ledger.records, batch))
    if (result !== undefined) await handle.writeFile(await compressed(ledger.blobs.read(result)));
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}
