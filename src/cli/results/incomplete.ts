import type { OlderSide } from '../../api/compare-to.ts';
import { firstThrown, messageOf } from '../../base/offsite-error.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { listTrials } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { listAttempts } from '../../ledger/trial-rows.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { ours, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { Interrupted } from '../interruption.ts';
import type { Progress } from '../output/progress.ts';
import { storedSummary } from '../output/stored-batch.ts';
import {
  type BatchSummary,
  emptyRun,
  type Incomplete,
  mergedSummary,
  type RunSummary,
  type UnfinishedTrial,
} from '../output/summary.ts';
import { summaryTable } from '../output/summary-table.ts';
import { type PrintParts, wantsDetails, writeGithubStep, writePages, writeReports } from './print-results.ts';

interface Unfinished extends Omit<PrintParts, 'signal'> {
  /** All that the command works on, with the batches that were started by now. */
  work(): Omit<UnfinishedWork, 'thrown'>[];
  /** What the results would be compared with. */
  older?: OlderSide | undefined;
  /** The results of what is finished. */
  finished(): readonly BatchSummary[];
  /** Whether the JSON document is a list. */
  isList?: boolean;
}

/** Writes the test reports as soon as the signal aborts. Disposing ends that. */
export function saveWhenInterrupted(unfinished: Unfinished, signal: AbortSignal): Disposable {
  const { options, progress, context } = unfinished;
  const save = (reason: unknown) => {
    if (options.junit === undefined && options.ctrf === undefined) return;
    const summaries = summariesOf(unfinished, reason);
    // They are written again, and named, once the command has ended.
    const silent = { redact: context.redact, clock: context.clock, note: () => undefined };
    if (summaries.length > 0) writeReports(summaries, options, silent);
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
    else for (const summary of summaries) printSummary(summary, context.out, summaries.length > 1);
    // Trials that are missing would look like a difference, so the results so far are not compared.
    if (older)
      progress.note(
        text`not compared with ${older.name}: trials are missing; \`offsite resume\` takes --compare-to as well`,
      );
    writeReports(summaries, options, context);
    // The first signal was for the trials; a second one ends the process at once.
    await writePages(summaries, options, context, new AbortController().signal);
    writeGithubStep(summaries, context, options);
  } catch (error) {
    progress.note(text`cannot print all results so far: ${messageOf(error)}`);
  }
}

function summariesOf(unfinished: Unfinished, thrown: unknown): BatchSummary[] {
  const { options, work, finished } = unfinished;
  const { ledger } = unfinished.workshop;
  const details = wantsDetails(options);
  const begun = work().flatMap((one) => incompleteSummary({ ...one, thrown }, ledger, details) ?? []);
  return [...finished(), ...begun];
}

function printSummary(
  summary: BatchSummary,
  out: PrintParts['context']['out'],
  isOneOfSeveral: boolean,
): void {
  const { passed, failed, void: voided, incomplete } = summary;
  const finished = passed + failed + voided;
  const which = isOneOfSeveral ? text`${summary.batchId}: ` : '';
  // What failed is printed after this.
  const ended = incomplete?.kind === 'interrupted' ? incomplete.why : ours('stopped');
  const counts = ours(`${plural(finished, 'trial')} finished, ${incomplete?.unfinished ?? 0} left`);
  const shown = [finished > 0 && summaryTable(summary), text`${which}${ended}: ${counts}`];
  out.print(text`\n${stack(shown)}\n`);
}

interface UnfinishedWork {
  /** What was planned; undefined for a batch that was started without a plan. */
  plan: SuitePlan | undefined;
  /** The batches that were started for it. */
  batches: readonly StoredBatch[];
  /** What ended the command. */
  thrown: unknown;
}

/**
 * The results of batches so far, and the trials that have none. Undefined if no batch was started. If a suite
 * needs several batches and not all were started, the trials of the others are taken from the plan.
 */
function incompleteSummary(
  { plan, batches, thrown }: UnfinishedWork,
  ledger: Ledger,
  details: boolean,
): BatchSummary | undefined {
  const [first, ...more] = batches.map((batch) => storedSummary(ledger, batch, { details }));
  if (!first) return undefined;
  const set = batches[0] && ledger.sets.ofBatch(batches[0].key)?.id;
  const whole = more.length > 0 || set !== undefined ? mergedSummary([first, ...more], set) : first;
  const { kind, why } = endedBy(thrown);
  const left = batches.flatMap(({ key }) => listTrials(ledger.records, key)).filter(({ result }) => !result);
  const begun = Map.groupBy(left, ({ caseId, variant }) => nameOf({ case: caseId, variant }));
  const { cases = [], variants = [], trials = 0 } = plan ?? {};
  const planned = cases.flatMap(({ request }) =>
    variants.map(({ name, model }) => emptyRun({ id: '', case: request.id, variant: name, model })),
  );
  // The first run of a name stays at its place, and the last one counts.
  const named = new Map([...whole.runs, ...planned, ...whole.runs].map((run) => [nameOf(run), run]));
  const runs = [...named.values()].map((run): RunSummary => {
    const ofRun = begun.get(nameOf(run)) ?? [];
    const length = Math.max(ofRun.length, trials - run.trials.length);
    const unfinished = Array.from({ length }, (_, index): UnfinishedTrial => {
      const trial = ofRun[index];
      // Trials of several batches are renumbered, and those of no batch have no number yet.
      const ordinal = trial && whole === first ? trial.ordinal : run.trials.length + index;
      const hasBegun = trial !== undefined && listAttempts(ledger.records, trial.key).length > 0;
      return { ordinal, why: `${hasBegun ? 'has no result' : 'did not begin'}: ${why}` };
    });
    return { ...run, ...(unfinished.length > 0 && { unfinished }) };
  });
  const unfinished = runs.reduce((sum, run) => sum + (run.unfinished?.length ?? 0), 0);
  return { ...whole, incomplete: { kind, why, unfinished }, runs };
}

/** What ended the command: `interrupted by SIGTERM`, or what failed. */
export function endedBy(thrown: unknown): Pick<Incomplete, 'kind' | 'why'> {
  const first = firstThrown(thrown);
  return first instanceof Interrupted
    ? { kind: 'interrupted', why: `interrupted by ${first.message}` }
    : { kind: 'failed', why: messageOf(first) };
}

function nameOf({ case: id, variant }: Pick<RunSummary, 'case' | 'variant'>): string {
  return JSON.stringify([id, variant]);
}

/**
 * Saves results as soon as the signal aborts: a CI system that ends a job may kill this process before its
 * sandboxes are removed. Disposing ends that.
 *
 * @param save gets the signal's reason
 */
export function whenInterrupted(
  save: (reason: unknown) => void,
  signal: AbortSignal,
  progress: Pick<Progress, 'note'>,
): Disposable {
  const onAbort = () => saveIfPossible(() => save(signal.reason), progress);
  signal.addEventListener('abort', onAbort, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', onAbort) };
}

/** Saves the results of a command that is ending. Never throws: the first error decides the exit code. */
export function saveIfPossible(save: () => void, { note }: Pick<Progress, 'note'>): void {
  try {
    save();
  } catch (error) {
    note(text`cannot save the results so far: ${messageOf(error)}`);
  }
}
