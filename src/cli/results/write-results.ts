import { randomUUID } from 'node:crypto';
import { parse } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import { versionOf } from '../../base/version.ts';
import { plainText } from '../../text/output.ts';
import { lines, type Redact, text } from '../../text/printable.ts';
import type { CommandContext } from '../context.ts';
import { exportPage } from '../export-page.ts';
import { type JunitBatch, type JunitTrial, junitXml, whyNot } from '../output/junit.ts';
import { type BatchSummary, elapsedOf, type MergedSummary } from '../output/summary.ts';
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
  try {
    if (junit !== undefined) writeText(junit, junitXml(results, redact));
    if (ctrf !== undefined) writeText(ctrf, ctrfJson(results, { redact, now: clock.now() }));
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

/** All results as one document. */
function together(summaries: readonly AnySummary[]): JunitBatch {
  const [first, ...more] = summaries;
  if (first && more.length === 0) return first;
  const sum = (of: 'passed' | 'failed' | 'void') => summaries.reduce((total, one) => total + one[of], 0);
  const idOf = (summary: AnySummary) =>
    'set' in summary ? (summary.set ?? summary.batchId) : summary.batchId;
  return {
    batchId: summaries.map(idOf).join(', '),
    passed: sum('passed'),
    failed: sum('failed'),
    void: sum('void'),
    ...elapsedOf(summaries),
    runs: summaries.flatMap(({ runs }) => runs),
  };
}

/**
 * A batch as a document of CTRF, the Common Test Report Format (https://ctrf.io), with a test for each trial.
 * A void trial is `other`, a trial without a result is `skipped`.
 */
export function ctrfJson(batch: JunitBatch, { redact, now }: { redact?: Redact; now: number }): string {
  const plain = (content: string) => plainText(text`${content}`, redact);
  const problemOf = (trial: JunitTrial) => {
    const { first, all } = whyNot(trial);
    return { message: plain(first), trace: plainText(lines(all.join('\n')), redact) };
  };
  const tests = batch.runs.flatMap((run) => {
    const suite = [plain(run.case), plain(run.variant)];
    const named = (ordinal: number) => ({ name: `${suite.join(' · ')} #${ordinal}`, suite });
    return [
      ...run.trials.map((trial) => ({
        ...named(trial.ordinal),
        status: statusOf(trial),
        duration: Math.round(trial.durationMs),
        rawStatus: trial.verdict,
        ...(trial.verdict !== 'passed' && problemOf(trial)),
      })),
      ...(run.unfinished ?? []).map(({ ordinal, why }) => ({
        ...named(ordinal),
        status: 'skipped',
        duration: 0,
        message: plain(why),
      })),
    ];
  });
  const { startedAt: start = now, finishedAt: stop = start } = batch;
  const count = (status: string) => tests.filter((test) => test.status === status).length;
  const document = {
    reportFormat: 'CTRF',
    specVersion: '0.0.0',
    reportId: randomUUID(),
    timestamp: new Date(now).toISOString(),
    generatedBy: 'offsite',
    runId: batch.set ?? batch.batchId,
    results: {
      tool: { name: 'offsite', version: versionOf() },
      summary: {
        tests: tests.length,
        passed: count('passed'),
        failed: count('failed'),
        skipped: count('skipped'),
        pending: 0,
        other: count('other'),
        start: Math.round(start),
        stop: Math.round(stop),
      },
      tests,
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function statusOf({ verdict }: JunitTrial): string {
  return verdict === 'passed' || verdict === 'failed' ? verdict : 'other';
}
