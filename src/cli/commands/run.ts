import { Command, Option } from '@commander-js/extra-typings';
import { type FinishedBatches, runUntilPrecise } from '../../agent/auto-trials.ts';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import { planParts } from '../../agent/plan-parts.ts';
import type { BatchEvent, BatchParts } from '../../agent/run-batch.ts';
import { runSet } from '../../agent/run-set.ts';
import type { ComparedBatches } from '../../comparison/comparison.ts';
import type { Reference } from '../../comparison/side.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { OffsiteError } from '../../offsite-error.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { passedEnvironment } from '../../trial/host-environment.ts';
import { SandboxImageMissing } from '../../trial/image/base-image.ts';
import { checkModels } from '../../trial/models.ts';
import { ciRun } from '../ci-run.ts';
import { olderSide } from '../compare-to.ts';
import { CommandContext } from '../context.ts';
import { belowText, exitCodeOfRates, exitCodes } from '../exit-codes.ts';
import { Interrupted } from '../interruption.ts';
import { rate, wholeNumber, withAllowOutside, withService } from '../options.ts';
import { comparisonText } from '../output/comparison.ts';
import { githubStep, tellGithub } from '../output/github.ts';
import { interruptedTable } from '../output/interrupted-table.ts';
import { preciseRates, preciseRatesText } from '../output/known-rates.ts';
import { mergedSummary } from '../output/merged-summary.ts';
import { openProgress } from '../output/progress.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import type { BatchSummary } from '../output/summary.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';
import { placedFailure } from '../placed-failure.ts';
import { leftOutText, plannedSuite, type TaskOptions, withTasks } from '../planned-suite.ts';
import { hasRegression, type RegressionGates, regressionLines } from '../regression.ts';
import { type OnMiss, replayedBatch } from '../replayed-batch.ts';
import type { CommonOptions } from '../settings.ts';
import { writeText } from '../write-text.ts';

export function runCommand() {
  return withTasks(withAllowOutside(withService(new Command('run'))))
    .description(
      'run a suite: every case on every variant, each trial in its own sandbox, each result reported',
    )
    .argument('[file]', 'the suite file (YAML)')
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option('--fail-under <rate>', 'exit 1 when the pass rate is below this (0 to 1)', rate)
    .option('--junit <file>', 'also write the results as JUnit XML')
    .addOption(
      new Option(
        '--compare-to <batch>',
        'compare the results with a batch on this machine; `last`: with the last finished one of the suite; ' +
          "`baseline`: with the service's baseline",
      ).conflicts('dryRun'),
    )
    .option('--fail-on-regression', 'exit 1 if a variant is worse than there by more than noise')
    .option('--fail-on-case-regression', 'exit 1 if a case always passed there and always fails here')
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

interface RunOptions extends CommonOptions, TaskOptions, RegressionGates {
  concurrency?: number | undefined;
  failUnder?: number | undefined;
  junit?: string | undefined;
  compareTo?: string | undefined;
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
  const { env, dataFolder, host, clock, redact, out, err } = context;
  using progress = await openProgress({ err, env, clock, plain: options.json === true });
  context.note = progress.note;
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
  let finished: FinishedBatches;
  try {
    finished = await runTrials(plan, options, { ...workshop, revisions }, signal, observe);
  } catch (error) {
    const kept = ledger.outbox.pending().filter((report) => report.service === service).length;
    const waiting = kept > 0 ? `${plural(kept, 'result')} kept in ${dataFolder}; ` : '';
    const placed = placedFailure(error, context.config);
    // Nothing was started with an image that there is not.
    if (!options.dryRun && !(error instanceof SandboxImageMissing))
      progress.note(`${waiting}\`offsite resume\` continues what is not finished`);
    progress[Symbol.dispose]();
    const table = error instanceof Interrupted ? interruptedTable(begun, workshop) : undefined;
    if (table && !options.json) out.print(text`\n${table}\n`);
    throw placed;
  }
  await progress.step('delivering results of earlier runs', () =>
    deliverLeftovers(workshop, signal, progress.note, clock.now()),
  );
  progress[Symbol.dispose]();

  // The data folder of a dry run is gone afterwards, and so are the paths in the details.
  const detailed = options.json === true && !options.dryRun;
  const [first, ...more] = finished.batches.map((one) => finishedSummary(one, workshop, detailed));
  if (!first) throw new Error('the run finished without a batch');
  const isAuto = options.trials === 'auto';
  const summary = more.length > 0 || isAuto ? mergedSummary([first, ...more], finished.set) : first;
  const rates = isAuto ? preciseRates(finished) : undefined;
  const compared = older?.compare(referenceTo(finished, ledger, service));
  if (options.json)
    out.json({ ...summary, rates, comparison: compared, ...(leftOut.length > 0 && { leftOut }) });
  else {
    out.print(text`\n${summaryTable(summary)}\n`);
    if (rates) out.print(text`${preciseRatesText(rates, batchIdsOf(finished))}\n`);
    if (compared) out.print(comparisonText(compared));
    const see = options.dryRun ? undefined : seeWhy([first, ...more], options.dataFolder);
    if (options.dryRun) progress.note(rehearsedText(summary));
    if (context.untried.length > 0)
      progress.note(text`this dry run did not try ${context.untried.join('; ')}`);
    if (see) progress.note(see);
  }
  if (options.junit !== undefined) {
    const { junitXml } = await import('../output/junit.ts');
    writeText(options.junit, junitXml(summary, redact));
  }
  const step = githubStep(env);
  // With --json stdout is one document; annotations are read from stderr as well.
  if (step) tellGithub(step, summary, { output: options.json ? err : out, warn: progress.note, redact });
  if (summary.unreported > 0) {
    const unreported = plural(summary.unreported, 'result');
    progress.note(`${unreported} could not be reported and are kept in ${dataFolder}: offsite outbox`);
  }
  if (compared && older)
    for (const line of regressionLines(compared, older.name, options)) progress.note(line);
  const below = belowText(summary, options.failUnder);
  if (below !== undefined) progress.note(below);
  return exitCodeOf(summary, options, compared);
}

/** Options that mean something only together with another one. */
function refuseLoneOptions(options: RunOptions): void {
  const { compareTo, failOnRegression, failOnCaseRegression, trials, precision, maxTrials, replay, onMiss } =
    options;
  const needs =
    onMiss === 'live' && replay === undefined
      ? ['--on-miss', '--replay']
      : (failOnRegression ?? failOnCaseRegression) && compareTo === undefined
        ? [failOnRegression ? '--fail-on-regression' : '--fail-on-case-regression', '--compare-to']
        : trials === undefined && (precision !== undefined || maxTrials !== undefined)
          ? [precision === undefined ? '--max-trials' : '--precision', '--trials auto']
          : undefined;
  if (!needs) return;
  throw new OffsiteError(`${needs[0]} needs ${needs[1]}`, {
    code: 'OPTION_MISSING',
    kind: 'input',
    hint: `Add ${needs[1]}, or remove ${needs[0]}.`,
  });
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

/** The batches of this run, as one side of a comparison. */
function referenceTo(finished: FinishedBatches, ledger: Ledger, service: string): Reference {
  const batches = batchIdsOf(finished).flatMap((id) => ledger.batches.find(id));
  return { name: 'this run', batches: batches.filter((one) => one.service === service), variant: undefined };
}

function exitCodeOf(
  summary: BatchSummary,
  { failUnder, ...gates }: RunOptions,
  compared: ComparedBatches | undefined,
): number {
  const code = exitCodeOfRates(summary, failUnder);
  if (code !== exitCodes.done) return code;
  return compared && hasRegression(compared, gates) ? exitCodes.belowThreshold : exitCodes.done;
}

/** What a dry run has shown. That work fails which nobody did is no finding. */
function rehearsedText({ passed, failed, void: missing }: BatchSummary): string {
  const graded = `${plural(passed + failed, 'trial')} went through sandbox, prepare, harness and grading`;
  const without = missing > 0 ? `; ${plural(missing, 'trial')} got no verdict, for the causes above` : '';
  return `rehearsed: ${graded}${without}. Agents did nothing, so trials are expected to fail.`;
}
