import { Command, Option } from '@commander-js/extra-typings';
import { type FinishedBatches, runUntilPrecise } from '../../agent/auto-trials.ts';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import { planParts } from '../../agent/plan-parts.ts';
import type { BatchEvent, BatchParts } from '../../agent/run-batch.ts';
import { runSet } from '../../agent/run-set.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { passedEnvironment } from '../../trial/host-environment.ts';
import { SandboxImageMissing } from '../../trial/image/base-image.ts';
import { checkModels } from '../../trial/models.ts';
import { ciRun } from '../ci-run.ts';
import { olderSide } from '../compare-to.ts';
import { CommandContext, type Workshop } from '../context.ts';
import { requireRoom } from '../data-folder.ts';
import { rate, wholeNumber, withAllowOutside, withService } from '../options.ts';
import { preciseRates, preciseRatesText } from '../output/known-rates.ts';
import { mergedSummary } from '../output/merged-summary.ts';
import { openProgress } from '../output/progress.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import { placedFailure } from '../placed-failure.ts';
import { leftOutText, plannedSuite, type TaskOptions, withTasks } from '../planned-suite.ts';
import { type OnMiss, replayedBatch } from '../replayed-batch.ts';
import { type ResultOptions, refuseBadResults, refuseLone, withResults } from '../results/options.ts';
import { saveWhenInterrupted, tellIncomplete } from '../results/tell-incomplete.ts';
import { tellResults, wantedDetail } from '../results/tell-results.ts';
import type { AnySummary } from '../results/write-results.ts';
import type { CommonOptions } from '../settings.ts';

export function runCommand() {
  return withResults(withTasks(withAllowOutside(withService(new Command('run')))))
    .description(
      'run a suite: every case on every variant, each trial in its own sandbox, each result reported',
    )
    .argument('[file]', 'the suite file (YAML)')
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .addOption(
      new Option('--trials <auto>', 'run further trials until the pass rate is known precisely')
        .choices(['auto'] as const)
        .conflicts('dryRun'),
    )
    .option('--precision <rate>', 'half the width of its 95 % interval (default: 0.05, ±5 points)', rate)
    .option('--max-trials <n>', 'the most trials of a case on a variant (default: 20)', wholeNumber)
    .addOption(
      new Option(
        '--replay <batch>',
        'answer all requests to models from the exchanges of a batch on this machine',
      ).conflicts(['dryRun', 'trials']),
    )
    .addOption(
      new Option('--on-miss <what>', 'with --replay: what becomes of a request that is not recorded')
        .choices(['fail', 'live'] as const)
        .default('fail' as const),
    )
    .option('--dry-run', 'rehearse the suite: agents do nothing, judges answer in form, nothing is reported')
    .action(async (file, options) => {
      process.exitCode = await run(file, options);
    });
}

interface RunOptions extends CommonOptions, TaskOptions, Omit<ResultOptions, keyof CommonOptions> {
  concurrency?: number | undefined;
  trials?: 'auto' | undefined;
  precision?: number | undefined;
  maxTrials?: number | undefined;
  replay?: string | undefined;
  onMiss?: OnMiss | undefined;
  dryRun?: true | undefined;
  allowOutside?: string[] | undefined;
}

async function run(file: string | undefined, options: RunOptions): Promise<number> {
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
  const plan = { ...read, trigger: ciRun(env), ...(recorded && { replay: recorded.replay }) };
  refuseManyAuto(plan, options);
  const left = leftOutText(leftOut);
  if (left) progress.note(left);
  const { compareTo } = options;
  const older = compareTo === undefined ? undefined : await olderSide(context, compareTo, plan, signal);
  const workshop = await progress.step('connecting to engine and service', () => context.workshop(signal));
  const { service, ledger } = workshop;
  interrupted.noteCrashesIn({ dataFolder, redact, crashes: ledger.crashes });
  const sandboxes = plan.variants.map(({ sandbox }) => sandbox);
  const revision = await context.revision(workshop, { concurrency: options.concurrency, sandboxes });
  await using revisions = new ConfigRevisions(revision);
  await checkModels(plan, revision.gateway);
  for (const { sandbox } of plan.variants) passedEnvironment(sandbox, host);
  progress.note(
    text`service: ${service}; ${plural(revision.concurrency, 'trial')} at a time; results in ${dataFolder}`,
  );

  const begun: string[] = [];
  const observe = (event: BatchEvent) => {
    if (event.kind === 'started') begun.push(event.batchId);
    progress.event(event);
  };
  const telling = { context, workshop, progress, options, older, signal };
  const work = () => [{ plan, batches: storedBatches(begun, workshop) }];
  const unfinished = { ...telling, work, finished: () => [] };
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
    // Nothing was started with an image that there is not.
    if (!options.dryRun && !(error instanceof SandboxImageMissing))
      progress.note(`${waiting}\`offsite resume\` continues what is not finished`);
    progress[Symbol.dispose]();
    await tellIncomplete(unfinished, error);
    throw placed;
  }
  progress[Symbol.dispose]();

  const detail = wantedDetail(options, env);
  const [first, ...more] = finished.batches.map((one) => finishedSummary(one, workshop, detail));
  if (!first) throw new Error('the run finished without a batch');
  const isAuto = options.trials === 'auto';
  const summary = more.length > 0 || isAuto ? mergedSummary([first, ...more], finished.set) : first;
  const rates = isAuto ? preciseRates(finished) : undefined;
  const told = {
    summary,
    batches: [first, ...more],
    below: rates && preciseRatesText(rates, batchIdsOf(finished)),
    members: { rates, ...(leftOut.length > 0 && { leftOut }) },
  };
  const code = await tellResults([told], telling);
  if (options.dryRun && !options.json) {
    progress.note(rehearsedText(summary, plan));
    if (context.untried.length > 0)
      progress.note(text`this dry run did not try ${context.untried.join('; ')}`);
  }
  return code;
}

/** Refuses options that mean something only together with another one. */
function refuseLoneOptions(options: RunOptions): void {
  const { trials, precision, maxTrials, replay, onMiss } = options;
  if (onMiss === 'live' && replay === undefined) refuseLone(['--on-miss', '--replay']);
  refuseBadResults(options);
  if (trials === undefined && (precision !== undefined || maxTrials !== undefined))
    refuseLone([precision === undefined ? '--max-trials' : '--precision', '--trials auto']);
}

/** Further trials are batches of chosen cases, which one start request must be able to hold. */
function refuseManyAuto(plan: SuitePlan, { trials }: RunOptions): void {
  if (trials !== 'auto' || planParts(plan).length === 1) return;
  throw new OffsiteError(`--trials auto cannot be used with ${plan.cases.length} cases`, {
    code: 'TOO_MANY_CASES',
    kind: 'input',
    hint: 'Choose at most 100 tasks, with --include or --limit.',
  });
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

/** What a dry run has shown. That work fails which nobody did is no finding. */
function rehearsedText(
  { passed, failed, void: missing }: AnySummary,
  { variants, judges }: SuitePlan,
): string {
  const graded = `${plural(passed + failed, 'trial')} went through sandbox, prepare, harness and grading`;
  const without = missing > 0 ? `; ${plural(missing, 'trial')} got no verdict, for the causes above` : '';
  const models = variants.some(({ modelConfig }) => modelConfig !== undefined)
    ? '. No model did any work, so their trials are expected to fail.'
    : '';
  const asked = judges.length > 0 ? ' A judge is asked only where the checks before it pass.' : '';
  return `rehearsed: ${graded}${without}${models}${asked}`;
}
