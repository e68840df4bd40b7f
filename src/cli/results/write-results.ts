import { randomUUID } from 'node:crypto';
import { parse } from 'node:path';
import { OffsiteError } from '../../base/offsite-error.ts';
import { versionOf } from '../../base/version.ts';
import { plainText } from '../../text/output.ts';
import { lines, type Redact, text } from '../../text/printable.ts';
import type { CommandContext } from '../context.ts';
import { exportPage } from '../export-page.ts';
import { type JunitBatch, type JunitTrial, junitXml, whyNot } from '../output/junit.ts';
import type { BatchSummary, MergedSummary } from '../output/summary.ts';
import { writeText } from '../write-text.ts';
import type { ResultOptions } from './options.ts';

export type AnySummary = BatchSummary | MergedSummary;

/**
 * Writes each result as JUnit XML and as CTRF, if that is wanted: the first to the named file, further ones
 * beside it with a number. Throws `FILE_NOT_WRITTEN`.
 */
export function writeReports(
  summaries: readonly AnySummary[],
  { junit, ctrf }: Pick<ResultOptions, 'junit' | 'ctrf'>,
  { redact, clock, note }: Pick<CommandContext, 'redact' | 'clock' | 'note'>,
): void {
  const write = (file: string | undefined, index: number, content: string, id: string) => {
    if (file === undefined) return;
    writeText(numbered(file, index), content);
    if (index > 0) note(`${numbered(file, index)}: ${id}`);
  };
  const all: readonly JunitBatch[] = summaries.length > 0 ? summaries : [nothing];
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

/** What is reported if there was nothing to do. */
const nothing: JunitBatch = { batchId: '', passed: 0, failed: 0, void: 0, runs: [] };

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
