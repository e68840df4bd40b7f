import { Command, Option } from '@commander-js/extra-typings';
import { suiteOptions } from '../../api/plan-suite.ts';
import { type PlatformRun, type PlatformSummary, waitForBatch } from '../../api/resume.ts';
import { checkedHere, chosenPlan, type Started, startHere, startThere } from '../../api/start.ts';
import { ciRun } from '../../api/types.ts';
import { inputError } from '../../base/offsite-error.ts';
import type { StartResponse } from '../../contract/definition.ts';
import { platformService } from '../../ledger/platform.ts';
import { loadSuite } from '../../suite/load-suite.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { uncarried } from '../../suite/uncarried.ts';
import { table } from '../../text/fit.ts';
import { type Printable, text, type Value } from '../../text/printable.ts';
import { percent, plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodeOfRates, exitCodes } from '../exit-codes.ts';
import { stoppingTrials } from '../interruption.ts';
import { type OptionsOf, rate, wholeNumber, withAllowOutside, withService } from '../options.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import { printResults, wantsDetails } from '../results/print-results.ts';

export function startCommand() {
  return withAllowOutside(withService(new Command('start')))
    .description(
      'start a suite as a platform batch: the service runs its trials itself, and they count for baselines. ' +
        'The embedded service runs them in `offsite serve`, or here if no server runs',
    )
    .argument('<file>', 'the suite file (YAML)')
    .option('--trials <n>', 'trials of each case on each variant (default: as in the file)', wholeNumber)
    .option('--variant <name...>', 'only these variants of the file')
    .addOption(
      new Option(
        '--for-daemons',
        'queue it for daemons, which run its trials in place of the service; no baseline counts them',
      ).conflicts('concurrency'),
    )
    .option('--wait', 'wait for the results, also if another process or another machine runs the trials')
    .option('--no-wait', 'only start it: leave the trials to a server, even if none runs yet')
    .option('-c, --concurrency <n>', 'trials at a time, if they run here', wholeNumber)
    .option('--fail-under <rate>', 'exit 1 when the pass rate is below this (0 to 1)', rate)
    .option('--drop-local', 'leave out what a request to another service cannot carry')
    .action(async (file, options) => {
      process.exitCode = await start(file, options);
    });
}

type StartOptions = OptionsOf<typeof startCommand>;

async function start(file: string, options: StartOptions): Promise<number> {
  if (options.wait === false && options.failUnder !== undefined)
    throw inputError(
      'OPTIONS_CONTRADICT',
      '--fail-under needs the results, and --no-wait does not wait for them',
      { hint: 'Remove one of the two.' },
    );
  await using context = CommandContext.open(options, { suite: file, creates: true });
  const { config, env, dataFolder, clock, redact } = context;
  const whole = loadSuite(file, config, context.runners, suiteOptions(options, context));
  const plan = { ...chosenPlan(whole, options), trigger: ciRun(env) };
  using progress = await context.progress(options);
  context.platform = checkedHere;
  let doing = stoppingTrials;
  const interrupted = context.interruption({ doing: () => doing });
  const { signal } = interrupted;
  const { client, platform, name } = await context.service();
  const forDaemons = options.forDaemons === true;
  const service = platform && !forDaemons ? platformService : name;
  // --fail-under needs the results, so it implies --wait.
  const wait = options.wait ?? (options.failUnder === undefined ? undefined : true);
  let started: Started;
  if (platform && !forDaemons) {
    interrupted.noteCrashesIn({ dataFolder, redact, crashes: context.ledger().crashes });
    const { concurrency } = options;
    const here = { context, platform, concurrency, mayRun: wait !== false };
    started = await startHere(plan, here, { progress, observe: progress.event, signal });
  } else {
    const isSelected = (index: number) => plan.variants.some((one) => one === whole.variants[index]);
    const profiles = forDaemons ? config.daemon.profiles : undefined;
    const left = uncarried(file, profiles, isSelected, forDaemons ? plan.cases : []);
    const there = { client, uncarried: left, dropLocal: options.dropLocal === true, forDaemons };
    started = await startThere(plan, there, signal);
    if (forDaemons && plan.variants.some(({ profile }) => profile.name !== undefined))
      progress.note('daemons use the profile that their own daemon.profiles has for the harness');
    const { suites, cases } = config.daemon;
    if (forDaemons && suites.length + cases.length > 0 && !suites.includes(plan.suite.id))
      progress.note(
        text`daemon.suites of ${config.file ?? 'the configuration'} does not have ${plan.suite.id}`,
      );
    if (left.length > 0) progress.note(`left out: ${left.map(({ path }) => path).join(', ')}`);
  }
  if (started.kind === 'finished') {
    progress[Symbol.dispose]();
    const workshop = { ledger: context.ledger(), service: platformService };
    const summary = finishedSummary(started.batch, workshop, wantsDetails(options));
    return printResults([{ summary, batches: [summary] }], { context, workshop, progress, options, signal });
  }

  const { batch, next } = started;
  const trials = plural(batch.runs.length * plan.trials, 'trial');
  if (wait !== true) {
    if (options.json) context.out.json(startedBatch(batch, plan, service));
    else context.out.print(text`started batch ${batch.id}: ${trials}`);
    progress.note(next);
    return exitCodes.done;
  }
  progress.note(text`started batch ${batch.id}: ${trials}`);
  doing = 'no longer waiting; the batch continues';
  signal.addEventListener('abort', () => progress.note(next));
  const noteEnded = (ended: number) => progress.note(text`${ended} of ${trials} have ended`);
  const waiting = { client, clock, service, progress: noteEnded };
  const summary = await progress.step('waiting for the results', () =>
    waitForBatch(batch, plan, waiting, signal),
  );
  progress[Symbol.dispose]();
  if (options.json) context.out.json(summary);
  else context.out.print(text`\n${platformTable(summary)}\n`);
  return exitCodeOfRates({ ...summary, unreported: 0 }, options.failUnder);
}

/** What --json prints of a batch that others run: its ids, and which run is of which case and variant. */
function startedBatch(batch: StartResponse, { variants, trials }: SuitePlan, service: string) {
  const runs = batch.runs.map((run) => {
    return { ...run, case: run.caseId, variant: variants[run.variantIndex]?.name };
  });
  return { ...batch, batchId: batch.id, service, trials: runs.length * trials, runs };
}

/** The results of a batch that a service ran. */
function platformTable(summary: PlatformSummary): Printable {
  const row = (name: Value, one: Pick<PlatformRun, 'passed' | 'failed' | 'void' | 'passRate'>) => {
    return [name, String(one.passed), String(one.failed), String(one.void), percent(one.passRate)];
  };
  const columns = ['run', ...['passed', 'failed', 'void', 'pass rate'].map((right) => ({ right }))];
  const runs = summary.runs.map((run) => row(text`${run.case} · ${run.variant}`, run));
  return table(columns, [...runs, row('all', summary)]);
}
