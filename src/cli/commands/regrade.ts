import { statSync } from 'node:fs';
import { Command } from '@commander-js/extra-typings';
import { enginesOf } from '../../agent/engines/check.ts';
import { planRegrade, type RegradeEvent, regradeTrials } from '../../agent/regrade-batch.ts';
import { type PlanningOptions, plannedSuite } from '../../api/plan-suite.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import { openBudget, spentFrom } from '../../gateway/budget.ts';
import { type ListedTrial, listTrials } from '../../ledger/find.ts';
import { findTarget, type Target } from '../../ledger/find-target.ts';
import { refuseForeign } from '../../ledger/foreign-batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { orNearest } from '../../text/nearest.ts';
import { text } from '../../text/printable.ts';
import { checkModels } from '../../trial/models.ts';
import { Sandboxes } from '../../trial/sandboxes.ts';
import { CommandContext } from '../context.ts';
import { exitCodeOfRates, exitCodes } from '../exit-codes.ts';
import { rate, wholeNumber, withAllowOutside, withConfigAndData } from '../options.ts';
import type { ActivityEvent } from '../output/activity.ts';
import { openProgress } from '../output/progress.ts';
import {
  type RegradedBatch,
  regradeDocument,
  regradeJunit,
  regradeSums,
  regradeText,
} from '../output/regrade.ts';
import type { CommonOptions } from '../settings.ts';
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

interface RegradeOptions extends CommonOptions {
  case?: string[] | undefined;
  suite?: string | undefined;
  planned?: true | undefined;
  onlyMissing?: true | undefined;
  newServices?: true | undefined;
  concurrency?: number | undefined;
  failUnder?: number | undefined;
  junit?: string | undefined;
  allowOutside?: string[] | undefined;
}

async function regrade(what: string | undefined, options: RegradeOptions): Promise<number> {
  const { suite: suiteFile, planned } = options;
  if (suiteFile !== undefined && planned) {
    throw new OffsiteError('--planned and a suite file cannot be used together', {
      code: 'OPTION_CONFLICT',
      kind: 'input',
      hint: 'Remove --suite or --planned.',
    });
  }
  await using context = await openedContext(what, options);
  const { config, env, clock, runners, host, redact, out, err } = context;
  using progress = await openProgress({ err, env, clock, plain: options.json === true });
  context.note = progress.note;
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
  await checkModels({ variants: [], judges: jobs.flatMap(({ spec }) => spec.judges) }, gateway);
  const certificates = await context.certificates();
  await using opened = new AsyncDisposableStack();
  const [sandboxes, ...elsewhere] = enginesOf(engines).map((engine) =>
    opened.use(
      new Sandboxes(engine, certificates, {
        ...{ runners, host, clock, buildLogs: ledger.buildLogs },
        observeBuild: (build) => progress.event({ kind: 'build', build }),
      }),
    ),
  );
  if (!sandboxes) throw new Error('there is no engine');
  context.noteLimits();
  const batch = openBudget(config.budgets.batch, clock.now());
  progress.update({ kind: 'planned', trials: jobs.length, spent: () => spentFrom(batch) });
  const graded = await regradeTrials(
    jobs,
    {
      ...{ ledger, sandboxes, elsewhere, runners, clock, gateway, concurrency: revision.concurrency },
      budgets: { ...config.budgets, batch },
      suite: suite?.file,
    },
    signal,
    (event) => progress.update(activityOf(event)),
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

/** Opens the context with the configuration beside the suite that says how to grade, as a run of it does. */
async function openedContext(what: string | undefined, options: RegradeOptions): Promise<CommandContext> {
  if (options.suite !== undefined) return CommandContext.open(options, { suite: options.suite });
  await using context = CommandContext.open(options);
  const { batch } = findTarget(context.ledger().records, what);
  const { dataFolder } = context;
  return CommandContext.open(
    { ...options, dataFolder },
    batch.file === undefined ? {} : { suite: batch.file },
  );
}

/** The finished trials of a batch, a run or a trial. Throws `CASE_UNKNOWN`. */
function chosenTrials(ledger: Ledger, target: Target, cases: string[] | undefined): ListedTrial[] {
  const all = listTrials(ledger.records, target.batch.key).filter(({ result }) => result !== undefined);
  const unknown = cases?.find((id) => !all.some(({ caseId }) => caseId === id));
  if (unknown !== undefined) {
    const known = [...new Set(all.map(({ caseId }) => caseId))];
    const near = orNearest(unknown, known);
    throw new OffsiteError(`${target.batch.id} has no finished trial of a case ${unknown}${near}`, {
      code: 'CASE_UNKNOWN',
      kind: 'input',
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
