import { statSync } from 'node:fs';
import { Command } from '@commander-js/extra-typings';
import { enginesOf } from '../../agent/engines/check.ts';
import {
  type LeftOutTrial,
  planRegrade,
  type RegradedTrial,
  type RegradedVerdict,
  type RegradeEvent,
  regradeTrials,
} from '../../agent/regrade-batch.ts';
import { type PlanningOptions, plannedSuite } from '../../api/plan-suite.ts';
import { inputError } from '../../base/offsite-error.ts';
import { openBudget, spentFrom } from '../../gateway/budget.ts';
import { listTrials } from '../../ledger/find.ts';
import { findTarget, type Target } from '../../ledger/find-target.ts';
import { refuseForeign } from '../../ledger/foreign-batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { table } from '../../text/fit.ts';
import { orNearest } from '../../text/nearest.ts';
import { ours, type Printable, stack, text, type Value } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import type { ObserveBuild } from '../../trial/prepare/obtain-image.ts';
import { Sandboxes } from '../../trial/prepare/sandboxes.ts';
import { checkModels } from '../../trial/run/models.ts';
import { CommandContext } from '../context.ts';
import { exitCodeOfRates, exitCodes } from '../exit-codes.ts';
import { type OptionsOf, rate, wholeNumber, withAllowOutside, withConfigAndData } from '../options.ts';
import type { ActivityEvent } from '../output/activity.ts';
import type { ReportedBatch } from '../output/junit.ts';
import { verdictsOf } from '../output/summary.ts';
import { firstOf, trialName } from '../show/layout.ts';
import { announcedTarget } from '../show/open-trial.ts';
import { writeText } from '../write-text.ts';

export function regradeCommand() {
  return withAllowOutside(withConfigAndData(new Command('regrade')))
    .description(
      'grade finished trials again, with the current validator, verify, tests and judges and without any ' +
        'agent; the new grading is kept beside the first one, and what was reported stays reported',
    )
    .argument('[what]', 'a batch, a run or a trial, as `offsite show` takes it (default: the last batch)')
    .option('--case <id...>', 'only trials of these cases')
    .option(
      '--suite <file>',
      'the suite file that says how to grade (default: the one that the batch was started from)',
    )
    .option('--planned', 'grade as the batch was planned, and ignore later changes of its suite file')
    .option('--only-missing', 'leave out trials that have a new grading of the same kind already')
    .option('--new-services', 'start new services for a case, without what the agent did to them')
    .option('-c, --concurrency <n>', 'gradings at a time (default: from cores and memory)', wholeNumber)
    .option('--fail-under <rate>', 'exit 1 if a smaller part than this passes, from 0 to 1', rate)
    .option('--junit <file>', 'also write the new gradings as JUnit XML')
    .option('--json', 'print one JSON document on stdout')
    .action(async (what, options) => {
      process.exitCode = await regrade(what, options);
    });
}

type RegradeOptions = OptionsOf<typeof regradeCommand>;

async function regrade(what: string | undefined, options: RegradeOptions): Promise<number> {
  const { suite: suiteFile, planned } = options;
  if (suiteFile !== undefined && planned) {
    throw inputError('OPTION_CONFLICT', '--planned and a suite file cannot be used together', {
      hint: 'Remove --suite or --planned.',
    });
  }
  await using context =
    suiteFile === undefined
      ? await CommandContext.openFor(options, ({ records }) => findTarget(records, what).batch.file)
      : CommandContext.open(options, { suite: suiteFile });
  const { config, clock, runners, host, redact, out } = context;
  using progress = await context.progress(options);
  const { signal } = context.interruption({
    doing: () => 'ending the gradings; those that are done are kept',
  });
  const ledger = context.ledger();
  const target = announcedTarget(context, what);
  refuseForeign(target.batch, 'graded again');
  const trials = chosenTrials(ledger, target, options.case);
  const planning = { progress, signal, withoutHarness: true };
  const suite = await suiteFor(target, options, context, planning);
  const engines = await progress.step('connecting to the engine', () => context.enginesForTrials(signal));
  const revision = await context.revision(engines, { concurrency: options.concurrency });
  await using gateway = revision.gateway;
  const { onlyMissing = false, newServices = false } = options;
  const request = { trials, suite, onlyMissing, newServices };
  const { jobs, leftOut } = await planRegrade(request, { ledger, harnesses: runners, revision });
  await checkModels({ variants: [], judges: jobs.flatMap(({ spec }) => spec.judges) }, revision);
  const certificates = await context.certificates();
  const { buildLogs } = ledger;
  const observeBuild: ObserveBuild = (build) => progress.event({ kind: 'build', build });
  await using opened = new AsyncDisposableStack();
  const [sandboxes, ...elsewhere] = enginesOf(engines).map((engine) =>
    opened.use(new Sandboxes(engine, certificates, { runners, host, clock, buildLogs, observeBuild })),
  );
  if (!sandboxes) throw new Error('there is no engine');
  context.noteLimits();
  const batch = openBudget(config.budgets.batch, clock.now());
  progress.update({ kind: 'planned', trials: jobs.length, spent: () => spentFrom(batch) });
  const { concurrency } = revision;
  const budgets = { ...config.budgets, batch };
  const own = { ledger, runners, clock, gateway, concurrency, budgets, suite: suite?.file };
  const graded = await regradeTrials(jobs, { ...own, sandboxes, elsewhere }, signal, (event) =>
    progress.update(activityOf(event)),
  );
  progress[Symbol.dispose]();
  const regraded = { batchId: target.batch.id, suite: suite?.file, graded, leftOut };
  if (options.json) out.json(regradeDocument(regraded));
  else out.print(text`\n${regradeText(regraded)}\n`);
  if (options.junit !== undefined) {
    const { junitXml } = await import('../output/junit.ts');
    writeText(options.junit, junitXml(regradeJunit(regraded), redact));
  }
  return exitCodeOf(regraded, options);
}

/** The finished trials of a batch, a run or a trial. Throws `CASE_UNKNOWN`. */
function chosenTrials(ledger: Ledger, target: Target, cases: string[] | undefined): StoredTrial[] {
  const all = listTrials(ledger.records, target.batch.key).filter(({ result }) => result !== undefined);
  const unknown = cases?.find((id) => !all.some(({ caseId }) => caseId === id));
  if (unknown !== undefined) {
    const near = orNearest(unknown, [...new Set(all.map(({ caseId }) => caseId))]);
    throw inputError('CASE_UNKNOWN', `${target.batch.id} has no finished trial of a case ${unknown}${near}`, {
      hint: '`offsite show BATCH` lists the cases.',
    });
  }
  return all.filter(
    ({ key, run, caseId }) =>
      (cases === undefined || cases.includes(caseId)) &&
      (target.kind === 'batch' || run === target.run.key) &&
      (target.kind !== 'trial' || key === target.trial.key),
  );
}

/** The suite that says how to grade; undefined for the plan of the batch. */
async function suiteFor(
  { batch }: Target,
  { suite, planned, allowOutside }: RegradeOptions,
  context: CommandContext,
  planning: PlanningOptions,
): Promise<SuitePlan | undefined> {
  if (planned) return undefined;
  const file = suite ?? batch.file;
  if (suite === undefined) {
    const kind = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
    if (!kind?.isFile()) {
      const where = kind ? 'a folder of tasks' : 'a suite file that is not there any more';
      if (file !== undefined)
        context.note(`the batch was started from ${where}, ${file}: its plan says how to grade`);
      return undefined;
    }
  }
  return (await plannedSuite(file, { allowOutside }, context, planning)).plan;
}

function activityOf(event: RegradeEvent): ActivityEvent {
  const { trial } = event.kind === 'graded' ? event.regraded : event;
  const { caseId, variant, ordinal } = trial;
  const named = { key: String(trial.key), case: caseId, which: `${variant} #${ordinal}` };
  if (event.kind === 'phase') return { ...event, trial: named };
  const { verdict, durationMs } = event.regraded.now;
  return { kind: 'finished', trial: named, verdict, ms: durationMs };
}

/** The exit code of a run, or 2 if nothing that was asked for could be graded again. */
function exitCodeOf(regraded: RegradedBatch, { failUnder, onlyMissing }: RegradeOptions): number {
  const { graded, leftOut, ...sums } = regradeSums(regraded);
  if (graded === 0 && leftOut > 0 && !onlyMissing) return exitCodes.badInput;
  return exitCodeOfRates({ ...sums, unreported: 0 }, graded === 0 ? undefined : failUnder);
}

/** What a regrade of a batch gave. */
interface RegradedBatch {
  batchId: string;
  /** The suite file that said how to grade; undefined for the plan of the batch. */
  suite: string | undefined;
  graded: RegradedTrial[];
  leftOut: LeftOutTrial[];
}

function regradeSums({ graded, leftOut }: RegradedBatch) {
  return {
    graded: graded.length,
    changed: graded.filter(hasChanged).length,
    leftOut: leftOut.length,
    ...verdictsOf(graded.map(({ now }) => now)),
    /** Of the first gradings of these trials. */
    passRateBefore: verdictsOf(graded.map(({ was }) => was)).passRate,
  };
}

function hasChanged({ was, now }: RegradedTrial): boolean {
  return was.verdict !== now.verdict;
}

/** The verdicts side by side, those that changed first. */
function regradeText(batch: RegradedBatch): Printable {
  const { graded, leftOut, suite } = batch;
  const inOrder = graded.toSorted((one, other) => Number(hasChanged(other)) - Number(hasChanged(one)));
  const rows = inOrder.map((one) => [
    trialName(one.trial),
    one.was.verdict,
    hasChanged(one) ? ours(`→ ${one.now.verdict}`) : ours('the same'),
    reasonOf(one),
  ]);
  const notes = Map.groupBy(
    graded.flatMap((one) => one.notes),
    (note) => note,
  );
  return stack([
    ...(rows.length > 0 ? [table(['trial', 'was', 'is now', 'why'], rows), ours('')] : []),
    sumsText(regradeSums(batch)),
    suite === undefined ? ours('graded as the batch was planned') : text`graded as ${suite} says`,
    ...thresholdLines(graded),
    ...[...notes].map(([note, all]) => text`note: ${note} (${plural(all.length, 'trial')})`),
    ...leftOutLines(leftOut),
  ]);
}

/** Each threshold that changed, once. */
function thresholdLines(graded: readonly RegradedTrial[]): Printable[] {
  const changes = graded.flatMap(({ thresholds }) => thresholds);
  const alike = Map.groupBy(changes, ({ name, was, now }) => JSON.stringify([name, was, now]));
  return [...alike.values()].flatMap(([change, ...others]) => {
    if (!change) return [];
    const { name, was = 'none', now = 'none' } = change;
    const count = plural(others.length + 1, 'trial');
    return [text`threshold of the judgment "${name}": ${was} → ${now} (${ours(count)})`];
  });
}

/** The reason for the new verdict; if the trial passes now, why it did not before. */
function reasonOf({ was, now }: RegradedTrial): Printable {
  const reason = whyOf(now);
  if (reason !== undefined) return text`${reason}`;
  const earlier = now.verdict === 'passed' && was.verdict !== 'passed' ? whyOf(was) : undefined;
  return earlier === undefined ? ours('') : text`was: ${earlier}`;
}

/** Why a grading did not pass, on one line; undefined if it passed. */
function whyOf({ cause, failures }: RegradedVerdict): string | undefined {
  const [first] = cause ? [`${cause.kind}, in ${cause.phase}: ${cause.message}`] : failures;
  return first?.trim().split('\n', 1)[0];
}

function sumsText({ graded, changed, leftOut, ...sums }: ReturnType<typeof regradeSums>): Printable {
  const rate = (value: number | undefined) => (value === undefined ? '–' : `${Math.round(value * 100)} %`);
  const rates = `pass rate ${rate(sums.passRateBefore)} → ${rate(sums.passRate)}`;
  const out = leftOut === 0 ? '' : `; ${plural(leftOut, 'trial')} left out`;
  return ours(`${plural(graded, 'trial')} graded again, ${changed} changed; ${rates}${out}`);
}

/** How many of the trials that were left out for the same reason are named. */
const named = 5;

function leftOutLines(leftOut: readonly LeftOutTrial[]): Value[] {
  const byReason = [...Map.groupBy(leftOut, ({ why }) => why)];
  return byReason.flatMap(([why, all]) => [
    text`left out ${plural(all.length, 'trial')}: ${why}`,
    ...firstOf(all, named, ({ trial }) => text`  ${trialName(trial)}`),
  ]);
}

/** What a regrade gave, as one JSON document. */
function regradeDocument(batch: RegradedBatch): unknown {
  const { batchId, suite, graded, leftOut } = batch;
  const named = ({ runId, caseId, variant, ordinal }: StoredTrial) => ({ runId, caseId, variant, ordinal });
  return {
    batchId,
    suite,
    ...regradeSums(batch),
    trials: graded.map(({ trial, was, now, notes, thresholds, grading }) => ({
      ...named(trial),
      changed: was.verdict !== now.verdict,
      was,
      now,
      notes,
      thresholds,
      gradedAt: grading.gradedAt,
      recordBlob: grading.result,
    })),
    leftOutTrials: leftOut.map(({ trial, why }) => ({ ...named(trial), why })),
  };
}

/** The new gradings as a batch for JUnit. */
function regradeJunit({ batchId, graded }: RegradedBatch): ReportedBatch {
  const byRun = [...Map.groupBy(graded, ({ trial }) => trial.runId).values()];
  const runs = byRun.map((trials) => {
    const [{ caseId = '', variant = '' } = {}] = trials.map(({ trial }) => trial);
    const reported = trials.map(({ trial, now }) => ({ ordinal: trial.ordinal, ...now }));
    return { case: caseId, variant, trials: reported };
  });
  return { batchId, runs };
}
