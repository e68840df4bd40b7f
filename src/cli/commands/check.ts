import { Command } from '@commander-js/extra-typings';
import { concurrencyFor } from '../../agent/engines/check.ts';
import { requireScripts } from '../../api/models.ts';
import { leftOutText, plannedSuite } from '../../api/plan-suite.ts';
import { placedFailure } from '../../api/run.ts';
import { checkCases } from '../../check/check-cases.ts';
import {
  type CheckedCase,
  type CheckedState,
  isUndecided,
  namesText,
  soundnessOf,
  statesOf,
  summedUp,
} from '../../check/checked-state.ts';
import { keptChecks } from '../../check/kept-checks.ts';
import { openBudget, spentFrom } from '../../gateway/budget.ts';
import { failureLines } from '../../record/failures.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { isUnwritten } from '../../suite/variables.ts';
import { table } from '../../text/fit.ts';
import { type Excerpt, excerpt, ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import type { ObserveBuild } from '../../trial/prepare/obtain-image.ts';
import { Sandboxes } from '../../trial/prepare/sandboxes.ts';
import { checkSandboxes } from '../../trial/prepare/start-image.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { duration, type OptionsOf, wholeNumber, withAllowOutside, withConfigAndData } from '../options.ts';
import { spentParts } from '../output/activity-text.ts';
import { mappedLines } from '../output/summary-table.ts';
import { endedBy, saveIfPossible, whenInterrupted } from '../results/incomplete.ts';
import { withTasks } from '../task-options.ts';
import { requireWritable, writeText } from '../write-text.ts';

export function checkCommand() {
  return withTasks(withAllowOutside(withConfigAndData(new Command('check'))))
    .description(
      "check a suite's grading without an agent: it must fail on the untouched workspace, " +
        "and pass after the case's solution; in each state its judges are asked, at their cost",
    )
    .argument('[file]', 'the suite file (YAML)')
    .option('-c, --concurrency <n>', 'gradings at a time (default: from cores and memory)', wholeNumber)
    .option('--repeat <n>', 'grade each state this many times, and list what differs', wholeNumber)
    .option(
      '--case-timeout <duration>',
      'stop a case whose gradings take longer than this together: 90s, 10m, 2h',
      duration,
    )
    .option(
      '--again',
      'grade everything and ask judges again, even if nothing changed since an earlier check',
    )
    .option('--output', 'also print the output of gradings that ended as expected; --json always has it')
    .option('--junit <file>', 'also write the results as JUnit XML')
    .option('--json', 'print one JSON document on stdout')
    .action(async (file, options) => {
      process.exitCode = await check(file, options);
    });
}

/** A grading passes if its verdict is the one that a sound case gets. */
const gradingWords = { passed: 'as expected', failed: 'not as expected', void: 'without a verdict' };

type CheckCommandOptions = OptionsOf<typeof checkCommand>;

async function check(suite: string | undefined, options: CheckCommandOptions): Promise<number> {
  if (options.junit !== undefined) requireWritable(options.junit);
  await using context = CommandContext.open(options, { suite });
  const { config, clock, runners, host, redact, out, err } = context;
  using progress = await context.progress({ json: options.json, words: gradingWords });
  const { signal } = context.interruption();
  const planning = { progress, signal, withoutHarness: true };
  const { plan, leftOut } = await plannedSuite(suite, options, context, planning);
  await requireScripts(plan.judges, config.models);
  const left = leftOutText(leftOut);
  if (left) progress.note(left);

  // Checks without --junit start without the library for XML.
  const { junit: file } = options;
  const xmlOf = file === undefined ? undefined : (await import('../output/junit.ts')).checkJunitXml;
  const writeJunit = (checked: readonly CheckedCase[]) => {
    if (file !== undefined && xmlOf) writeText(file, xmlOf(checked, remarkOn, redact));
  };
  const soFar = new CheckedSoFar(plan);
  const saveSoFar = (thrown: unknown) => writeJunit(soFar.cases(thrown));
  using _saving = whenInterrupted(saveSoFar, signal, progress);
  const { sandbox } = plan.variants[0] ?? {};
  if (!sandbox) throw new Error('a suite has at least one variant');
  const observeBuild: ObserveBuild = (build) => progress.event({ kind: 'build', build });
  const engine = await progress.step('connecting to the engine', () => context.engines.first(signal));
  const planned = { variants: [{ sandbox }], cases: plan.cases };
  const concurrency = options.concurrency ?? config.concurrency ?? concurrencyFor(engine, [sandbox]);
  progress.note(
    text`checking ${plural(plan.cases.length, 'case')}, untouched and solved; ${plural(concurrency, 'grading')} at a time`,
  );
  await progress
    .step('looking for the image of the sandbox', () => checkSandboxes(engine, planned, signal, observeBuild))
    .catch((error: unknown) => {
      throw placedFailure(error, config);
    });
  await using gateway = await context.models.gateway(context.config.models);
  await using sandboxes = new Sandboxes(engine, await context.certificates(), {
    runners,
    host,
    clock,
    observeBuild,
  });
  const batch = openBudget({}, clock.now());
  const kept = await keptChecks(context, plan, { engine, again: options.again === true, signal });
  const checked = await checkCases(
    plan,
    { sandboxes, runners, clock, gateway, budgets: { ...config.budgets, batch } },
    {
      repeat: options.repeat ?? 1,
      kept,
      concurrency,
      caseTimeoutMs: options.caseTimeout,
      signal,
      observe: progress.update,
      onBegin: soFar.begin,
      onState: soFar.add,
      onCase: (one) => progress.note(text`${one.id}: ${standingOf(one)}`),
    },
  ).catch((error: unknown) => {
    // More may have been found since the signal.
    saveIfPossible(() => saveSoFar(error), progress);
    throw error;
  });
  progress[Symbol.dispose]();
  const states = checked.flatMap((one) => one.states);
  const before = states.filter((state) => state.kept).length;
  if (before > 0)
    err.print(
      text`${before} of ${plural(states.length, 'result')} are from earlier checks; --again grades them again`,
    );
  if (options.json) out.json({ cases: checked, ...(leftOut.length > 0 && { leftOut }) });
  else out.print(text`\n${checkedText(checked, options.output === true)}\n`);
  const spent = spentParts({ spent: spentFrom(batch) });
  if (spent.length > 0) err.print(`models used ${spent.join(', ')}`);
  const unwritten = unwrittenText(plan);
  if (unwritten) err.print(unwritten);
  writeJunit(checked);
  return exitCodeOf(checked);
}

/** Says which prompts are still what `case add` wrote, which no agent may get. */
function unwrittenText({ file, suite, cases }: SuitePlan): Printable | undefined {
  const { prompt } = suite;
  const ofCases = cases.filter(({ request }) => Object.values(request.variables ?? {}).some(isUnwritten));
  const names = ofCases.map(({ request }) => request.id);
  const whose = prompt.kind === 'text' && isUnwritten(prompt.text) ? ['the suite', ...names] : names;
  if (whose.length === 0) return undefined;
  return text`write what the agent is asked before you run ${file}: the prompt of ${whose.join(', ')} is still a placeholder`;
}

/**
 * 3 if the machine or the time was at fault, so that nothing is known about a case; 1 if a case is at fault.
 */
function exitCodeOf(checked: readonly CheckedCase[]): number {
  const states = checked.flatMap((one) => one.states);
  if (states.some(isUndecided)) return exitCodes.infrastructure;
  return states.every(({ asExpected }) => asExpected) ? exitCodes.done : exitCodes.belowThreshold;
}

type Name = CheckedState['state'];

/** Collects what a check has found so far, in case the check is stopped. */
export class CheckedSoFar {
  readonly #planned: { id: string; names: Name[] }[];
  readonly #begun = new Set<string>();
  readonly #found = new Map<string, CheckedState>();

  constructor(plan: SuitePlan) {
    this.#planned = plan.cases.map((planned) => ({
      id: planned.request.id,
      names: statesOf(plan, planned).map(({ state }) => state),
    }));
  }

  readonly begin = (id: string, state: Name): void => {
    this.#begun.add(keyOf(id, state));
  };

  readonly add = (id: string, state: CheckedState): void => {
    this.#found.set(keyOf(id, state.state), state);
  };

  /** All planned cases. For each state without a result, `why` and `ended` say what ended the command. */
  cases(thrown: unknown): CheckedCase[] {
    const { kind: ended, why } = endedBy(thrown);
    return this.#planned.map(({ id, names }) => ({
      id,
      states: names.flatMap((name) => this.#found.get(keyOf(id, name)) ?? []),
      unfinished: names
        .filter((name) => !this.#found.has(keyOf(id, name)))
        .map((state) => {
          const hasBegun = this.#begun.has(keyOf(id, state));
          return { state, why: `${hasBegun ? 'has no result' : 'did not begin'}: ${why}`, ended };
        }),
    }));
  }
}

function keyOf(id: string, state: Name): string {
  return JSON.stringify([id, state]);
}

/**
 * Everything that a check found: the table, the notes on each case, and the totals.
 *
 * @param allOutputs whether outputs of states that are as expected are shown too
 */
function checkedText(checked: readonly CheckedCase[], allOutputs: boolean): Printable {
  return stack([
    checkTable(checked),
    ...notesOf(checked),
    ...judgedLines(checked),
    ...mappedLines(checked),
    ...outputsOf(checked, allOutputs),
    summedUp(checked),
  ]);
}

/** How a case stands, in words. Without a solution, nothing shows whether its checks can be passed. */
function standingOf(one: CheckedCase): string {
  const soundness = soundnessOf(one);
  if (soundness !== 'sound') return soundness === 'undecided' ? 'NO VERDICT' : 'NOT OK';
  return one.states.length > 1 ? 'ok' : 'ok, but without a solution nothing shows that it can be solved';
}

function checkTable(checked: readonly CheckedCase[]): Printable {
  const rows = checked.flatMap(({ id, states }) => [
    ...states.map((state) => [id, state.state, verdictsOf(state), remarkOn(state)]),
    ...(states.length > 1 ? [] : [[id, 'solved', ours('–'), 'the case has no solution']]),
  ]);
  const titles = ['case', 'workspace', 'verdict', 'remark'];
  return table(titles, rows);
}

/** What an author should know of a case, sound or not. */
function notesOf(checked: readonly CheckedCase[]): Printable[] {
  return checked.flatMap(({ id, states }) => {
    const notes = new Set(states.flatMap(({ notes = [] }) => notes));
    return [...notes].map((note) => text`${id}: ${note}`);
  });
}

/** What judges gave in each state, and which of them cannot distinguish the states. */
function judgedLines(checked: readonly CheckedCase[]): Printable[] {
  return checked.flatMap(({ id, states }) => {
    const names = new Set(states.flatMap(({ judgments = [] }) => judgments.map(({ name }) => name)));
    return [...names].map((name) => {
      const given = states.flatMap(({ state, judgments = [] }) =>
        judgments.filter((one) => one.name === name).map((one) => ({ state, ...one })),
      );
      const scores = given.map(({ state, score }) => `${state} ${score}`).join(', ');
      const isBlind = given.some(({ state, reaches }) => state === 'untouched' && reaches);
      const warning = isBlind ? '; it accepts an untouched workspace' : '';
      return text`${id}, judgment "${name}": ${scores}${warning}`;
    });
  });
}

function verdictsOf({ verdicts }: CheckedState): string {
  const counts = new Map<string, number>();
  for (const verdict of verdicts) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts]
    .map(([verdict, count]) => (verdicts.length > 1 ? `${count} × ${verdict}` : verdict))
    .join(', ');
}

function remarkOn({ state, asExpected, verdicts, flaky, cause, solution, timedOut }: CheckedState): string {
  // The cause shows whether the untouched workspace fails for the right reason.
  if (asExpected) return state === 'untouched' ? firstLine(cause) : '';
  const why = cause === undefined ? '' : `: ${firstLine(cause)}`;
  if (timedOut) return `NO VERDICT${why}`;
  if (flaky.length > 0) return `FLAKY, ${plural(flaky.length, 'check')}: ${flaky.join('; ')}`;
  if (verdicts.includes('void')) return `NO VERDICT${why}`;
  const passes = verdicts.includes('passed');
  if (state === 'untouched' && passes)
    return 'PASSES UNTOUCHED: nothing is left to do, or the checks check nothing';
  if (state === 'untouched') return `CANNOT PASS${why}`;
  return solution === undefined
    ? `FAILS ALTHOUGH SOLVED${why}`
    : `ITS SOLUTION FAILS: ${firstLine(solution)}`;
}

function firstLine(text = ''): string {
  return text.split('\n', 1)[0] ?? '';
}

/** Whole lines: an assertion is often long, and its end says what was found. */
const outputSize: Excerpt = { first: 6, last: 14, characters: 2_000, besides: failureLines };

/**
 * What gradings printed. Equal outputs are shown once. Without `all`, outputs of states that are as expected
 * are left out: an untouched case should fail, but its output looks like a problem.
 */
function outputsOf(checked: readonly CheckedCase[], all: boolean): Printable[] {
  const shown = checked.flatMap(({ id, states }) =>
    states.filter(({ asExpected }) => all || !asExpected).map((state) => ({ id, ...state })),
  );
  const solutions = shown.flatMap(({ id, solution }) =>
    solution === undefined ? [] : [stack([text`${id}, its solution failed:`, excerpt(solution, outputSize)])],
  );
  const printed = shown.filter(({ output = '' }) => output.trim() !== '');
  const outputs = [...Map.groupBy(printed, ({ output = '' }) => output)].map(([output, printers]) => {
    const states = [...Map.groupBy(printers, ({ id }) => id)].map(
      ([id, of]) => `${id}, ${of.map(({ state }) => state).join(' and ')}`,
    );
    return stack([text`${namesText(states, '; ')}, printed:`, excerpt(output, outputSize)]);
  });
  return [...solutions, ...outputs];
}
