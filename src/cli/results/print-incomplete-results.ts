import type { OlderSide } from '../../api/compare-to.ts';
import { messageOf } from '../../base/offsite-error.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { summaryTable } from '../output/summary-table.ts';
import { incompleteSummary, type UnfinishedWork } from './incomplete.ts';
import { type PrintParts, wantedDetail, writeGithubStep } from './print-results.ts';
import { whenInterrupted } from './when-interrupted.ts';
import { type AnySummary, writePages, writeReports } from './write-results.ts';

export interface Unfinished extends Omit<PrintParts, 'signal'> {
  /** All that the command works on, with the batches that were started by now. */
  work(): Omit<UnfinishedWork, 'thrown'>[];
  /** The results of what is finished. */
  finished(): readonly AnySummary[];
  /** Whether the JSON document is a list. */
  isList?: boolean;
}

/** Writes the test reports as soon as the signal aborts. Disposing ends that. */
export function saveWhenInterrupted(unfinished: Unfinished, signal: AbortSignal): Disposable {
  const { options, progress, context } = unfinished;
  const save = (reason: unknown) => {
    if (options.junit === undefined && options.ctrf === undefined) return;
    const summaries = summariesOf(unfinished, reason);
    if (summaries.length > 0) writeReports(summaries, options, context);
  };
  return whenInterrupted(save, signal, progress);
}

/**
 * Prints and writes the results of a command that ended before all its trials had a result, with those that
 * have none. Never throws: what ended the command is printed after it.
 */
export async function printIncompleteResults(unfinished: Unfinished, thrown: unknown): Promise<void> {
  const { context, options, progress, older, isList = false } = unfinished;
  try {
    const summaries = summariesOf(unfinished, thrown);
    if (summaries.length === 0) return;
    if (options.json) context.out.json(isList ? summaries : summaries[0]);
    else for (const summary of summaries) printSummary(summary, context.out);
    if (older) progress.note(notComparedText(older));
    writeReports(summaries, options, context);
    // The first signal was for the trials; a second one ends the process at once.
    await writePages(summaries, options, context, new AbortController().signal);
    writeGithubStep(summaries, context, options);
  } catch (error) {
    progress.note(text`cannot print all results so far: ${messageOf(error)}`);
  }
}

function summariesOf(unfinished: Unfinished, thrown: unknown): AnySummary[] {
  const { workshop, options, context, work, finished } = unfinished;
  const detail = wantedDetail(options, context.env);
  const begun = work().flatMap((one) => incompleteSummary({ ...one, thrown }, workshop.ledger, detail) ?? []);
  return [...finished(), ...begun];
}

function printSummary(summary: AnySummary, out: PrintParts['context']['out']): void {
  const finished = summary.passed + summary.failed + summary.void;
  const results = finished > 0 ? [summaryTable(summary)] : [];
  out.print(text`\n${stack([...results, incompleteLine(summary)])}\n`);
}

/** Trials that are missing would look like a difference, so the results so far are not compared. */
function notComparedText({ name }: OlderSide): Printable {
  return text`not compared with ${name}: trials are missing; \`offsite resume\` takes --compare-to as well`;
}

function incompleteLine({ incomplete, ...summary }: AnySummary): Printable {
  const finished = summary.passed + summary.failed + summary.void;
  const { kind, why = '', unfinished = 0 } = incomplete ?? {};
  const counts = ours(`${plural(finished, 'trial')} finished, ${unfinished} left`);
  // What failed is printed after this.
  return text`${kind === 'interrupted' ? why : ours('stopped')}: ${counts}`;
}
