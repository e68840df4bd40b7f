import { parse } from 'node:path';
import type { CommandContext } from '../context.ts';
import { exportPage } from '../export-page.ts';
import { ctrfJson } from '../output/ctrf.ts';
import { type JunitBatch, junitXml } from '../output/junit.ts';
import type { MergedSummary } from '../output/merged-summary.ts';
import { type BatchSummary, elapsedOf } from '../output/summary.ts';
import { writeText } from '../write-text.ts';
import type { ResultOptions } from './options.ts';

export type AnySummary = BatchSummary | MergedSummary;

/** Writes the results as JUnit XML and as CTRF, if that is wanted. Throws `FILE_NOT_WRITTEN`. */
export function writeReports(
  summaries: readonly AnySummary[],
  { junit, ctrf }: Pick<ResultOptions, 'junit' | 'ctrf'>,
  { redact, clock }: Pick<CommandContext, 'redact' | 'clock'>,
): void {
  const results = together(summaries);
  if (junit !== undefined) writeText(junit, junitXml(results, redact));
  if (ctrf !== undefined) writeText(ctrf, ctrfJson(results, { redact, now: clock.now() }));
}

/**
 * Writes each batch as one page, if that is wanted: the first to the named file, further ones beside it with
 * a number. Throws `FILE_NOT_WRITTEN`.
 */
export async function writePages(
  summaries: readonly AnySummary[],
  { html }: ResultOptions,
  context: CommandContext,
  signal: AbortSignal,
): Promise<void> {
  if (html === undefined) return;
  const ledger = context.ledger();
  const batches = summaries.flatMap((summary) =>
    ('batchIds' in summary ? summary.batchIds : [summary.batchId]).flatMap((id) =>
      ledger.batches.find(id).filter(({ service }) => service === summary.service),
    ),
  );
  for (const [index, batch] of batches.entries())
    await exportPage(numbered(html, index), batch, context, signal);
}

/** `report.html`, `report-2.html`, … */
function numbered(file: string, index: number): string {
  if (index === 0) return file;
  const { ext } = parse(file);
  return `${file.slice(0, file.length - ext.length)}-${index + 1}${ext}`;
}

/** All results as one document. */
function together(summaries: readonly AnySummary[]): JunitBatch {
  const [first, ...more] = summaries;
  if (first && more.length === 0) return first;
  const sum = (of: 'passed' | 'failed' | 'void') => summaries.reduce((total, one) => total + one[of], 0);
  const idOf = (summary: AnySummary) =>
    'set' in summary ? (summary.set ?? summary.batchId) : summary.batchId;
  return {
    batchId: summaries.map(idOf).join(', '),
    ...{ passed: sum('passed'), failed: sum('failed'), void: sum('void') },
    ...elapsedOf(summaries),
    runs: summaries.flatMap(({ runs }) => runs),
  };
}
