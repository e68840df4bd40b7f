import { parse } from 'node:path';
import type { NotCompared, OlderSide } from '../../api/compare-to.ts';
import type { Workshop } from '../../api/context.ts';
import { infrastructureError, OffsiteError } from '../../base/offsite-error.ts';
import type { ComparedBatches } from '../../comparison/comparison.ts';
import type { Reference } from '../../comparison/side.ts';
import { fingerprintsOf } from '../../ledger/fingerprints.ts';
import { isBehindName, type KnownFingerprint, mixedTexts } from '../../record/fingerprint.ts';
import { ours, type Printable, text } from '../../text/printable.ts';
import { percent, plural } from '../../text/quantities.ts';
import type { CommandContext } from '../context.ts';
import { belowText, exitCodeOfRates, exitCodes } from '../exit-codes.ts';
import { exportPage } from '../export-page.ts';
import { comparisonText } from '../output/comparison.ts';
import { githubStep, writeGithubResults } from '../output/github.ts';
import { ctrfJson, junitXml, type ReportedBatch } from '../output/junit.ts';
import type { Progress } from '../output/progress.ts';
import type { BatchSummary, RunSummary } from '../output/summary.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';
import {
  exitCodeOfGates,
  failedGates,
  hasGate,
  isNoWorse,
  notComparedLine,
  regressionLines,
} from '../regression.ts';
import { writeText } from '../write-text.ts';
import type { ResultOptions } from './options.ts';

/** The results of a batch, or of batches that belong together. */
export interface BatchResults {
  summary: BatchSummary;
  /** The batches one by one. */
  batches: readonly BatchSummary[];
  /** What they are compared with, if anything. */
  older?: OlderSide | NotCompared | undefined;
  /** Above the table. */
  title?: Printable | undefined;
  /** Below the table. */
  below?: Printable | undefined;
  /** Further members of its JSON document. */
  members?: Record<string, unknown>;
}

export interface PrintParts {
  context: CommandContext;
  workshop: Pick<Workshop, 'ledger' | 'service'>;
  progress: Progress;
  options: ResultOptions;
  signal: AbortSignal;
}

/** Whether the summaries for {@link printResults} have the details for a JSON document. */
export function wantsDetails({ json, dryRun }: ResultOptions): boolean {
  // The data folder of a dry run is gone afterwards, and so are the paths in it.
  return json === true && !dryRun;
}

/**
 * Prints the results of a command that has run all its trials, and writes them to the files that options
 * name. Returns the exit code.
 *
 * @param isList whether the JSON document is a list, however many results there are
 */
export async function printResults(
  all: readonly BatchResults[],
  { context, workshop, progress, options, signal }: PrintParts,
  { isList = false } = {},
): Promise<number> {
  context.engines.beginClosing();
  const { out } = context;
  const compared = all.map(({ batches, older }) =>
    older && 'compare' in older ? older.compare(referenceTo(batches, workshop)) : undefined,
  );
  if (options.json) {
    const documents = all.map(({ summary, members }, index) => {
      return { ...summary, ...members, comparison: compared[index] };
    });
    out.json(isList ? documents : documents[0]);
  } else {
    for (const [index, results] of all.entries()) printBatchResults(results, compared[index], out);
  }
  if (!options.dryRun)
    for (const { batches } of all) {
      const see = seeWhy(batches, options.dataFolder);
      if (see) progress.note(see);
    }
  const summaries = all.map(({ summary }) => summary);
  writeReports(summaries, options, context);
  await writePages(summaries, options, context, signal);
  const fingerprints = ({ batches }: BatchResults) =>
    referenceTo(batches, workshop).batches.flatMap(({ key }) => fingerprintsOf(workshop.ledger.records, key));
  const concluded = all.map((results, index) =>
    conclusionOf(results, compared[index], options, fingerprints(results)),
  );
  writeGithubStep(
    summaries,
    context,
    options,
    all.map((_, index) => ({
      concluded: concluded[index]?.lines ?? [],
      code: concluded[index]?.code,
      why: concluded[index]?.why,
      isKnown: knownOf(compared[index], options),
    })),
  );
  const unreported = summaries.reduce((sum, summary) => sum + summary.unreported, 0);
  if (unreported > 0) {
    const kept = `kept in ${context.dataFolder}: offsite data outbox`;
    progress.note(`the service does not show ${plural(unreported, 'result')} yet; ${kept}`);
  }
  for (const [index, { lines }] of concluded.entries())
    for (const line of lines)
      progress.note(all.length > 1 ? text`${summaries[index]?.batchId ?? ''}: ${line}` : line);
  const codes = concluded.map(({ code }) => code);
  return Math.max(exitCodes.done, ...codes);
}

/** The exit code of a result, why it is not 0, and what to say of thresholds and gates. */
export function conclusionOf(
  { summary, older }: Pick<BatchResults, 'summary' | 'older'>,
  compared: ComparedBatches | undefined,
  options: ResultOptions,
  known: readonly KnownFingerprint[],
): { code: number; why: Printable[]; lines: Printable[] } {
  const ofGates = gateLines(older, compared, options);
  // No model did any work in a dry run, so it has no pass rate to judge.
  const failUnder = options.dryRun ? undefined : options.failUnder;
  const ofThreshold = failUnder === undefined ? [] : [ours(thresholdText(summary, failUnder))];
  const isBelow = belowText(summary, failUnder) !== undefined;
  const rates = exitCodeOfRates(summary, failUnder);
  const gates = older ? exitCodeOfGates(compared, options) : exitCodes.done;
  // Also beside a threshold or a gate that fails: the code of these is another one.
  const without = `${plural(summary.void, 'trial')} without a verdict: the exit code is ${exitCodes.infrastructure}`;
  const ofVoid = summary.void > 0 ? [ours(without)] : [];
  // A gate that passes or fails on trials of two models says nothing about either.
  const unjudged = failUnder !== undefined || hasGate(options) ? mixedTexts(known, isBehindName) : [];
  const ofMixed = unjudged.map(
    (mixed) =>
      text`${mixed}, so they are not judged as one: the exit code is ${exitCodes.infrastructure}; run the suite again`,
  );
  const others = mixedTexts(known).filter((mixed) => !unjudged.includes(mixed));
  const failed = compared && older && 'name' in older ? failedGates(compared, older.name, options) : ofGates;
  return {
    code: Math.max(rates, gates, ofMixed.length > 0 ? exitCodes.infrastructure : exitCodes.done),
    why: [
      ...(gates === exitCodes.done ? [] : failed),
      ...(isBelow ? ofThreshold : []),
      ...ofVoid,
      ...ofMixed,
    ],
    lines: [...ofGates, ...ofThreshold, ...ofVoid, ...ofMixed, ...others.map((mixed) => text`${mixed}`)],
  };
}

/** Which failed trials are no finding, since only a regression fails the command. */
function knownOf(compared: ComparedBatches | undefined, options: ResultOptions) {
  if (!compared || !hasGate(options) || options.failUnder) return undefined;
  return (run: RunSummary) => isNoWorse(compared, run);
}

function gateLines(
  older: BatchResults['older'],
  compared: ComparedBatches | undefined,
  options: ResultOptions,
): Printable[] {
  if (!older) return [];
  if ('whyNot' in older) return [notComparedLine(older.whyNot, options)];
  return compared ? regressionLines(compared, older, options) : [];
}

/** Says whether the results reach `--fail-under`. */
function thresholdText(summary: BatchSummary, failUnder: number): string {
  const below = belowText(summary, failUnder);
  if (below !== undefined) return below;
  return `the pass rate of ${percent(summary.passRate)} reaches ${percent(failUnder)} (--fail-under)`;
}

/**
 * Adds the results to the step of GitHub Actions that this process runs in.
 *
 * @param said what was said of thresholds and gates, for each result
 */
export function writeGithubStep(
  summaries: readonly BatchSummary[],
  { env, out, err, redact, note }: CommandContext,
  { json }: ResultOptions,
  said: readonly Omit<Parameters<typeof writeGithubResults>[1], 'summary'>[] = [],
): void {
  const step = githubStep(env);
  // With --json stdout is one document; annotations are read from stderr as well.
  const means = { output: json ? err : out, warn: note, redact };
  if (!step) return;
  for (const [index, summary] of summaries.entries())
    writeGithubResults(step, { summary, concluded: [], ...said[index] }, means);
}

function printBatchResults(
  { summary, title, below }: BatchResults,
  compared: ComparedBatches | undefined,
  out: CommandContext['out'],
): void {
  const table = summaryTable(summary);
  out.print(title ? text`\n${title}\n${table}\n` : text`\n${table}\n`);
  if (below) out.print(text`${below}\n`);
  if (compared) out.print(comparisonText(compared));
}

/** The batches as one side of a comparison. */
function referenceTo(
  batches: readonly BatchSummary[],
  { ledger, service }: PrintParts['workshop'],
): Reference {
  const stored = batches.flatMap(({ batchId }) => ledger.batches.find(batchId));
  return { name: 'this run', batches: stored.filter((one) => one.service === service), variant: undefined };
}

/**
 * Writes each result as JUnit XML and as CTRF, if that is wanted: the first to the named file, further ones
 * beside it with a number. Throws `FILE_NOT_WRITTEN`.
 */
export function writeReports(
  summaries: readonly BatchSummary[],
  { junit, ctrf }: Pick<ResultOptions, 'junit' | 'ctrf'>,
  { redact, clock, note }: Pick<CommandContext, 'redact' | 'clock' | 'note'>,
): void {
  const write = (file: string | undefined, index: number, content: () => string, id: string) => {
    if (file === undefined) return;
    writeText(numbered(file, index), content());
    if (index > 0) note(`${numbered(file, index)}: ${id}`);
  };
  const all: readonly ReportedBatch[] = summaries.length > 0 ? summaries : [nothing];
  try {
    for (const [index, one] of all.entries()) {
      const id = one.set ?? one.batchId;
      write(junit, index, () => junitXml(one, redact), id);
      write(ctrf, index, () => ctrfJson(one, { redact, now: clock.now() }), id);
    }
  } catch (error) {
    throw afterRun(error);
  }
}

/** A report that cannot be written after the trials have run is no bad input: the batch is there. */
function afterRun(error: unknown): unknown {
  if (!(error instanceof OffsiteError && error.code === 'FILE_NOT_WRITTEN')) return error;
  return infrastructureError(error.code, error.message, {
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
