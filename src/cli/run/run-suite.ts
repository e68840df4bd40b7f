import { type FinishedBatches, runUntilPrecise } from '../../agent/auto-trials.ts';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import { resumable } from '../../agent/resume-batch.ts';
import type { BatchEvent, BatchParts } from '../../agent/run-batch.ts';
import { runSet } from '../../agent/run-set.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { passedEnvironment } from '../../trial/host-environment.ts';
import { askedBy, checkModels } from '../../trial/models.ts';
import { unsoundText } from '../check/last-check.ts';
import { ciRun } from '../ci-run.ts';
import { olderSide } from '../compare-to.ts';
import { CommandContext, type Workshop } from '../context.ts';
import { requireRoom } from '../data-folder.ts';
import { preciseRates, preciseRatesText } from '../output/known-rates.ts';
import { mergedSummary } from '../output/merged-summary.ts';
import { openProgress } from '../output/progress.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import { placedFailure } from '../placed-failure.ts';
import { leftOutText, plannedSuite } from '../planned-suite.ts';
import { blindGateText } from '../regression.ts';
import { replayedBatch } from '../replayed-batch.ts';
import { requireScripts } from '../require-scripts.ts';
import { printIncompleteResults, saveWhenInterrupted } from '../results/print-incomplete-results.ts';
import { printResults, wantedDetail } from '../results/print-results.ts';
import type { AnySummary } from '../results/write-results.ts';
import { type RunOptions, refuseLoneOptions, refuseManyAuto } from './options.ts';

/** Runs a suite and prints its results. Returns the exit code. */
export async function runSuite(file: string | undefined, options: RunOptions): Promise<number> {
  refuseLoneOptions(options);
  await using context = CommandContext.open(options, file === undefined ? {} : { suite: file });
  const { env, dataFolder, host, clock, redact, err } = context;
  using progress = await openProgress({
    ...{ err, env, clock },
    plain: options.json === true,
    isRehearsal: options.dryRun === true,
  });
  context.note = progress.note;
  // Before sources are fetched into it.
  requireRoom(dataFolder);
  const interrupted = context.interruption();
  const { signal } = interrupted;
  const recorded =
    options.replay === undefined
      ? undefined
      : replayedBatch(context, options.replay, options.onMiss ?? 'fail');
  const planning = { progress, signal, models: recorded?.models };
  const { plan: read, leftOut } = await plannedSuite(file, options, context, planning);
  // A dry run uses other models, but must refuse bad scripts as the run would.
  if (options.dryRun) requireScripts(askedBy(read), context.configured);
  const trials = typeof options.trials === 'number' ? options.trials : read.trials;
  const plan = { ...read, trials, trigger: ciRun(env), ...(recorded && { replay: recorded.replay }) };
  refuseManyAuto(plan, options);
  const left = leftOutText(leftOut);
  if (left) progress.note(left);
  const { compareTo } = options;
  const older = compareTo === undefined ? undefined : await olderSide(context, compareTo, plan, signal);
  // With `--trials auto`, how many trials there will be is not known yet.
  const blind = older && options.trials !== 'auto' ? blindGateText(older, options) : undefined;
  if (blind) progress.note(blind);
  const workshop = await progress.step('connecting to engine and service', () => context.workshop(signal));
  const { service, ledger, engine } = workshop;
  const unsound = await unsoundText(context, plan, { engine, signal });
  if (unsound) progress.note(unsound);
  interrupted.noteCrashesIn({ dataFolder, redact, crashes: ledger.crashes });
  const sandboxes = plan.variants.map(({ sandbox }) => sandbox);
  const revision = await context.revision(workshop, { concurrency: options.concurrency, sandboxes });
  await using revisions = new ConfigRevisions(revision);
  await checkModels(plan, revision.gateway);
  for (const { sandbox } of plan.variants) passedEnvironment(sandbox, host);
  context.noteLimits();
  progress.note(
    text`service: ${service}; ${plural(revision.concurrency, 'trial')} at a time; results in ${dataFolder}`,
  );

  const begun: string[] = [];
  const observe = (event: BatchEvent) => {
    if (event.kind === 'started') begun.push(event.batchId);
    progress.event(event);
  };
  const printing = { context, workshop, progress, options, older, signal };
  const work = () => [{ plan, batches: storedBatches(begun, workshop) }];
  const unfinished = { ...printing, work, finished: () => [] };
  using _saving = saveWhenInterrupted(unfinished, signal);
  let finished: FinishedBatches;
  try {
    finished = await runTrials(plan, options, { ...workshop, revisions }, signal, observe);
    await progress.step('delivering results of earlier runs', () =>
      deliverLeftovers(workshop, signal, progress.note, clock.now()),
    );
  } catch (error) {
    const kept = ledger.outbox.pending().filter((report) => report.service === service).length;
    const waiting = kept > 0 ? `${plural(kept, 'result')} kept in ${dataFolder}; ` : '';
    const placed = placedFailure(error, context.config);
    if (!options.dryRun && (kept > 0 || resumable(ledger, service).length > 0))
      progress.note(`${waiting}\`offsite resume\` continues what is not finished`);
    progress[Symbol.dispose]();
    await printIncompleteResults(unfinished, error);
    throw placed;
  }
  progress[Symbol.dispose]();

  const detail = wantedDetail(options, env);
  const [first, ...more] = finished.batches.map((one) => finishedSummary(one, workshop, detail));
  if (!first) throw new Error('the run finished without a batch');
  const isAuto = options.trials === 'auto';
  const summary = more.length > 0 || isAuto ? mergedSummary([first, ...more], finished.set) : first;
  const rates = isAuto ? preciseRates(finished) : undefined;
  const results = {
    summary,
    batches: [first, ...more],
    below: rates && preciseRatesText(rates, batchIdsOf(finished)),
    members: { rates, ...(leftOut.length > 0 && { leftOut }) },
  };
  const code = await printResults([results], printing);
  if (options.dryRun && !options.json) {
    progress.note(rehearsedText(summary, plan));
    if (context.untried.length > 0)
      progress.note(text`this dry run did not try ${context.untried.join('; ')}`);
  }
  return code;
}

/** Runs the suite once, in as many batches as its cases need, or until its pass rates are known precisely. */
async function runTrials(
  plan: SuitePlan,
  { trials, precision = 0.05, maxTrials = 20 }: RunOptions,
  parts: BatchParts,
  signal: AbortSignal,
  observe: (event: BatchEvent) => void,
): Promise<FinishedBatches> {
  if (trials === 'auto') return runUntilPrecise(plan, { precision, maxTrials }, parts, signal, observe);
  return { ...(await runSet(plan, parts, signal, observe)), rates: [] };
}

function batchIdsOf({ batches }: FinishedBatches): string[] {
  return batches.map(({ id }) => id);
}

function storedBatches(ids: readonly string[], { ledger, service }: Workshop): StoredBatch[] {
  return ids.flatMap((id) => ledger.batches.find(id)).filter((one) => one.service === service);
}

/** What a dry run has shown. Failed trials are no finding, because no model did the work. */
function rehearsedText(
  { passed, failed, void: missing }: AnySummary,
  { variants, judges }: SuitePlan,
): string {
  const graded = `${plural(passed + failed, 'trial')} went through sandbox, prepare, harness and grading`;
  const expected = failed > 0 ? ', so trials are expected to fail' : '';
  const without = missing > 0 ? `; ${plural(missing, 'trial')} got no verdict, for the causes above` : '';
  const models = variants.some(({ modelConfig }) => modelConfig !== undefined)
    ? `. No model did any work${expected}.`
    : '';
  const asked =
    judges.length > 0
      ? ' Judges that were asked gave full marks; what a validator asks after a check that failed was not tried.'
      : '';
  return `rehearsed: ${graded}${without}${models}${asked}`;
}
