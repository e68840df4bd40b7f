import { parse } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { CommandContext } from '../context.ts';
import { exportPage } from '../export-page.ts';
import { ctrfJson, junitXml, type ReportedBatch } from '../output/junit.ts';
import type { BatchSummary } from '../output/summary.ts';
import { writeText } from '../write-text.ts';
import type { ResultOptions } from './options.ts';

/**
 * Writes each result as JUnit XML and as CTRF, if that is wanted: the first to the named file, further ones
 * beside it with a number. Throws `FILE_NOT_WRITTEN`.
 */
export function writeReports(
  summaries: readonly BatchSummary[],
  { junit, ctrf }: Pick<ResultOptions, 'junit' | 'ctrf'>,
  { redact, clock, note }: Pick<CommandContext, 'redact' | 'clock' | 'note'>,
): void {
  const write = (file: string | undefined, index: number, content: string, id: string) => {
    if (file === undefined) return;
    writeText(numbered(file, index), content);
    if (index > 0) note(`${numbered(file, index)}: ${id}`);
  };
  const all: readonly ReportedBatch[] = summaries.length > 0 ? summaries : [nothing];
  try {
    for (const [index, one] of all.entries()) {
      const id = one.set ?? one.batchId;
      write(junit, index, junitXml(one, redact), id);
      write(ctrf, index, ctrfJson(one, { redact, now: clock.now() }), id);
    }
  } catch (error) {
    throw afterRun(error);
  }
}

/** A report that cannot be written after the trials have run is no bad input: the batch is there. */
function afterRun(error: unknown): unknown {
  if (!(error instanceof OffsiteError && error.code === 'FILE_NOT_WRITTEN')) return error;
  return new OffsiteError(error.message, {
    code: error.code,
    kind: 'infrastructure',
    cause: error,
    hint: 'The results are stored: `offsite show` has them, and `offsite export` writes them to a file.',
  });
}

/**
 * Writes each batch as one page, if that is wanted: the first to the named file, further ones beside it with
 * a number. Throws `FILE_NOT_WRITTEN`.
 */
export async function writePages(
  summaries: readonly BatchSummary[],
  { html }: ResultOptions,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> {
  if (html === undefined) return;
  const ledger = context.ledger();
  const batches = summaries.flatMap((summary) =>
    (summary.batchIds ?? [summary.batchId]).flatMap((id) =>
      ledger.batches.find(id).filter(({ service }) => service === summary.service),
    ),
  );
  for (const [index, batch] of batches.entries())
    await exportPage(numbered(html, index), batch, context, signal).catch((error) => {
      throw afterRun(error);
    });
}

/** `report.html`, `report-2.html`, … */
function numbered(file: string, index: number): string {
  if (index === 0) return file;
  const { ext } = parse(file);
  return `${file.slice(0, file.length - ext.length)}-${index + 1}${ext}`;
}

/** What is reported if there was nothing to do. */
const nothing: ReportedBatch = { batchId: '', runs: [] };
