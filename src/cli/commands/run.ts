import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import type { FinishedBatches } from '../../agent/auto-trials.ts';
import type { BatchEvent } from '../../agent/run-batch.ts';
import { resumable } from '../../agent/run-set.ts';
import { olderSide, refuseChanged } from '../../api/compare-to.ts';
import type { Workshop } from '../../api/context.ts';
import { leftOutText } from '../../api/plan-suite.ts';
import { type FinishedRun, planRun, readyRun } from '../../api/run.ts';
import { inputError } from '../../base/offsite-error.ts';
import { unsoundText } from '../../check/kept-checks.ts';
import { limits } from '../../contract/definition.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { percent, plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OptionsOf, rate, wholeNumber, withAllowOutside, withService } from '../options.ts';
import { keptText } from '../output/kept.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import { type BatchSummary, mergedSummary } from '../output/summary.ts';
import { blindGateText } from '../regression.ts';
import { printIncompleteResults, saveWhenInterrupted } from '../results/incomplete.ts';
import { refuseBadResults, throwMissingOption, withResults } from '../results/options.ts';
import { printResults, wantsDetails } from '../results/print-results.ts';
import { withTasks } from '../task-options.ts';

export function runCommand() {
  return withResults(withTasks(withAllowOutside(withService(new Command('run')))))
    .description(
      'run a suite: every case on every variant, each trial in its own sandbox, each result reported',
    )
    .argument('[file]', 'the suite file (YAML)')
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option(
      '--trials <n>',
      "trials of each run (default: the suite's); `auto`: further ones until the pass rate is known precisely",
      trialsWanted,
    )
    .option('--dry-run', 'rehearse the suite: agents do nothing, judges give full marks, nothing is reported')
    .optionsGroup('Options for a sample:')
    .option(
      '--precision <rate>',
      'with --trials auto: half the width of the 95 % interval (default: 0.05, ±5 points)',
      rate,
    )
    .option(
      '--max-trials <n>',
      'with --trials auto: the most trials of a case on a variant (default: 20)',
      wholeNumber,
    )
    .optionsGroup('Options for a replay:')
    .addOption(
      new Option(
        '--replay <batch>',
        'answer all requests to models from the exchanges of a batch on this machine',
      ).conflicts('dryRun'),
    )
    .addOption(
      new Option('--on-miss <what>', 'with --replay: how to answer a request that is not recorded')
        .choices(['fail', 'live'] as const)
        .default('fail' as const),
    )
    .optionsGroup('Options:')
    .action(async (file, options) => {
      process.exitCode = await run(file, options);
    });
}

type RunOptions = OptionsOf<typeof runCommand>;

/** `auto`, or how many trials each run has. */
function trialsWanted(text: string): number | 'auto' {
  if (text === 'auto') return text;
  const wanted = /^[1-9]\d*$/.test(text) ? Number(text) : Number.NaN;
  if (wanted <= limits.trials) return wanted;
  throw new InvalidArgumentError(`expected a whole number from 1 to ${limits.trials}, or auto.`);
}

/** Refuses options that mean something only together with another one. */
function refuseLoneOptions(options: RunOptions): void {
  const { trials, precision, maxTrials, replay, onMiss, dryRun } = options;
  if (onMiss === 'live' && replay === undefined) throwMissingOption(['--on-miss', '--replay']);
  refuseBadResults(options);
  const beside = replay === undefined ? (dryRun ? '--dry-run' : undefined) : '--replay';
  if (trials === 'auto' && beside !== undefined)
    throw inputError('OPTIONS_CONFLICT', `--trials auto cannot be used with ${beside}`, {
      hint: 'Leave one of them out, or name how many trials each run has: --trials 3.',
    });
  if (trials !== 'auto' && (precision !== undefined || maxTrials !== undefined))
    throwMissingOption([precision === undefined ? '--max-trials' : '--precision', '--trials auto']);
}

/** Runs a suite and prints its results. Returns the exit code. */
async function run(file: string | undefined, options: RunOptions): Promise<number> {
  refuseLoneOptions(options);
  await using context = CommandContext.open(options, { suite: file, creates: true });
  const { dataFolder, redact } = context;
  using progress = await context.progress({ json: options.json, isRehearsal: options.dryRun === true });
  const interrupted = context.interruption();
  const { signal } = interrupted;
  const { plan, leftOut } = await planRun(context, file, options, { progress, signal });
  const left = leftOutText(leftOut);
  if (left) progress.note(left);
  const { compareTo } = options;
  const named = compareTo === undefined ? undefined : await olderSide(context, compareTo, plan, signal);
  // With `--trials auto`, how many trials there will be is not known yet, nor what a gate can see.
  const older = named && options.trials === 'auto' ? { ...named, blind: [] } : named;
  if (older && (options.failOnRegression || options.failOnCaseRegression)) refuseChanged(older);
  const blind = older && blindGateText(older, options);
  if (blind) progress.note(blind);
  await using ready = await readyRun(context, plan, options, { progress, signal });
  const { workshop } = ready;
  const { service, ledger, engine } = workshop;
  const unsound = await unsoundText(context, plan, { engine, signal });
  if (unsound) progress.note(unsound);
  interrupted.noteCrashesIn({ dataFolder, redact, crashes: ledger.crashes });
  progress.note(
    text`service: ${service}; ${plural(ready.concurrency, 'trial')} at a time; results in ${dataFolder}`,
  );

  const begun: string[] = [];
  const observe = (event: BatchEvent) => {
    if (event.kind === 'started') begun.push(event.batchId);
    progress.event(event);
  };
  const printing = { context, workshop, progress, options, signal };
  const work = () => [{ plan, batches: storedBatches(begun, workshop) }];
  const unfinished = { ...printing, older, work, finished: () => [] };
  using _saving = saveWhenInterrupted(unfinished, signal);
  let finished: FinishedRun;
  try {
    finished = await ready.work(observe);
  } catch (error) {
    const kept = ledger.outbox.pending().filter((report) => report.service === service).length;
    const waiting = kept > 0 ? `${keptText(kept, dataFolder, service)}; ` : '';
    if (!options.dryRun && (kept > 0 || resumable(ledger, service).length > 0))
      progress.note(`${waiting}\`offsite resume\` continues what is not finished`);
    progress[Symbol.dispose]();
    await printIncompleteResults(unfinished, error);
    throw error;
  }
  progress[Symbol.dispose]();

  const details = wantsDetails(options);
  const [first, ...more] = finished.batches.map((one) => finishedSummary(one, workshop, details));
  if (!first) throw new Error('the run finished without a batch');
  const isAuto = options.trials === 'auto';
  const summary = more.length > 0 || isAuto ? mergedSummary([first, ...more], finished.set) : first;
  const results = {
    summary,
    batches: [first, ...more],
    older,
    below: isAuto ? preciseRatesText(finished) : undefined,
    members: { rates: isAuto ? preciseRates(finished) : undefined, ...(leftOut.length > 0 && { leftOut }) },
  };
  const code = await printResults([results], printing);
  if (options.dryRun && !options.json) {
    progress.note(rehearsedText(summary, plan));
    const gates = options.failUnder === undefined ? [] : ['--fail-under'];
    const untried = [...context.untried, ...gates];
    if (untried.length > 0) progress.note(text`this dry run did not try ${untried.join('; ')}`);
  }
  return finished.leftovers > 0 ? exitCodes.infrastructure : code;
}

function storedBatches(ids: readonly string[], { ledger, service }: Workshop): StoredBatch[] {
  return ids.flatMap((id) => ledger.batches.find(id)).filter((one) => one.service === service);
}

/** What a dry run has shown. Failed trials are no finding, because no model did the work. */
function rehearsedText(
  { passed, failed, void: missing }: BatchSummary,
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

/** What `--trials auto` found out about each variant, for programs. */
function preciseRates({ rates }: FinishedBatches) {
  return rates.map(({ variant, rate, halfWidth, stopped }) => ({ variant, rate, halfWidth, stopped }));
}

/** What {@link preciseRates} returns, for people. */
function preciseRatesText({ batches, ...finished }: FinishedBatches): Printable {
  return stack([
    ...preciseRates({ batches, ...finished }).map(({ variant, rate, halfWidth, stopped }) => {
      if (rate === undefined) return text`${variant}: no trial was scored`;
      const width = halfWidth === undefined ? 'unknown' : (halfWidth * 100).toFixed(1);
      const why =
        stopped === 'precise' ? 'precise enough' : 'stopped before that by --max-trials or void trials';
      const known = ours(`${percent(rate)} ± ${width} points`);
      return text`${variant}: pass rate ${known} on these cases; ${ours(why)}`;
    }),
    text`${ours(batches.length === 1 ? 'batch' : 'batches')} ${batches.map(({ id }) => id).join('+')}`,
  ]);
}
