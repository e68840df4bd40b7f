import { exportedPage } from '../bounds/anyone.ts';
import type { ReadOptions } from '../export/write-export.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { plural } from '../text/quantities.ts';
import type { CommandContext } from './context.ts';

/** Writes a batch as one page, and prints what is in it. Throws `FILE_NOT_WRITTEN`. */
export async function exportPage(
  file: string,
  batch: StoredBatch,
  context: CommandContext,
  signal: AbortSignal,
  { only, withOutputs }: ReadOptions = {},
): Promise<void> {
  const { exportHtml } = await import('../export/export-html.ts');
  const { writeExport } = await import('../export/write-export.ts');
  const { redactor, clock } = context;
  const maxBytes = exportedPage.bytes.whole;
  const parts = { ledger: context.ledger(), redactor, now: clock.now(), only, withOutputs, maxBytes, signal };
  const written = { trials: 0, leftOut: 0 };
  await writeExport(file, async (write) => {
    Object.assign(written, await exportHtml(batch, parts, write));
  });
  context.note(`${file}: ${plural(written.trials, 'trial')} of ${batch.id}`);
  if (written.leftOut > 0) {
    const trials = plural(written.leftOut, 'trial');
    context.note(
      `${trials} left out, because the file would be larger than browsers open well: --only failed`,
    );
  }
}
