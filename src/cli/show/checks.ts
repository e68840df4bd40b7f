import { stringify } from 'yaml';
import { parseForeignJson } from '../../base/parse-json.ts';
import type { Judgment, Validation } from '../../contract/validation.ts';
import type { LaterGrading } from '../../record/audit.ts';
import type { CheckBeside } from '../../record/checks-beside.ts';
import { hasPassed, isJudgment, lowJudgments, reachesThreshold, scoreText } from '../../record/failures.ts';
import { type StepStanding, stepRewards, stepRewardText, stepStanding } from '../../record/step-standing.ts';
import type { StepResult, TrialRecord } from '../../record/trial-record.ts';
import { stepUsage } from '../../record/usage.ts';
import { table } from '../../text/fit.ts';
import {
  type Excerpt,
  excerpt,
  lines,
  ours,
  type Printable,
  present,
  stack,
  styled,
  text,
  type Value,
} from '../../text/printable.ts';
import { duration, minute, plural } from '../../text/quantities.ts';
import { dim, firstLine, firstOf, inFull, inStory, mark, section, tookText } from './layout.ts';

/** How many checks of a kind a story shows with their output, and how many without. */
const most = { failed: 3, passed: 3 };

type Step = NonNullable<TrialRecord['verifySteps']>[number];

/**
 * The sections of verify, validations and judgments.
 *
 * @param whole with every output, also of what passed
 */
export function checkSections(record: TrialRecord, whole: boolean): Printable[] {
  const { verifySteps = [], validations = [], judgments = [], verifiedIn, validatedIn } = record;
  const size = whole ? inFull : inStory;
  const others = validations.filter((validation) => !isJudgment(validation, judgments));
  // In full, a judgment has what its judge was asked.
  const asked = (judgment: Judgment) =>
    validations
      .filter((one) => whole && one.name === judgment.name && isJudgment(one, judgments))
      .flatMap(({ calls = [] }) => calls.map((call) => callLines(call, size)));
  const kinds = [
    checks('verify', verifySteps, {
      passed: ({ exitCode }) => exitCode === 0,
      shown: (step) => stepLines(step, size),
      short: ({ command }) => firstLine(command),
      place: verifiedIn,
    }),
    checks('validations', others, {
      passed: (validation) => hasPassed(validation, judgments),
      shown: (validation) => validationLines(validation, judgments, size),
      short: ({ name }) => name,
      isUnjudged: (validation) => lowJudgments(validation, judgments).some(isUnjudged),
      place: validatedIn,
    }),
    checks('judgments', judgments, {
      passed: reachesThreshold,
      shown: (judgment) => stack([judgmentLines(judgment, size), ...asked(judgment)]),
      short: (judgment) => `${judgment.name}  ${scoreText(judgment)}`,
      isUnjudged,
    }),
  ];
  return kinds.flatMap((kind) => kind(whole) ?? []);
}

interface Kind<Item> {
  passed(item: Item): boolean;
  /** With its output. */
  shown(item: Item): Printable;
  /** On one line. */
  short(item: Item): string;
  /** Whether a judge gave no judgment, so that it has neither passed nor failed. */
  isUnjudged?(item: Item): boolean;
  place?: 'fresh' | 'same' | undefined;
}

function isUnjudged({ error }: Judgment): boolean {
  return error !== undefined;
}

/** Failed checks come first in a story; if all are asked for, they stay in order. */
function checks<Item>(title: string, items: readonly Item[], kind: Kind<Item>) {
  const { passed, shown, short, isUnjudged = () => false, place } = kind;
  return (whole: boolean): Printable | undefined => {
    if (items.length === 0) return undefined;
    const failed = items.filter((item) => !passed(item));
    const line = (item: Item) =>
      text`${mark(passed(item) ? 'passed' : isUnjudged(item) ? 'void' : 'failed')} ${short(item)}`;
    const unjudged = failed.filter(isUnjudged).length;
    const of = `of ${items.length}`;
    const bad = present([
      failed.length > unjudged && `${failed.length - unjudged} ${of} failed`,
      unjudged > 0 && `${unjudged} ${of} not judged`,
    ]);
    const counts = bad.length === 0 ? `all ${items.length} passed` : bad.join(', ');
    const where = place === 'same' ? `${counts}, in the harness's own sandbox` : counts;
    if (whole) return section(title, where, items.map(shown));
    return section(title, where, [
      ...failed.slice(0, most.failed).map(shown),
      ...firstOf(failed.slice(most.failed), most.failed, line),
      ...firstOf(items.filter(passed), most.passed, line, (count) => dim(`… and ${count} more passed`)),
    ]);
  };
}

function stepLines(step: Step, size: Excerpt): Printable {
  const { command, exitCode, durationMs, output, outputTruncated } = step;
  const verdict = mark(exitCode === 0 ? 'passed' : 'failed');
  return stack([
    text`${verdict} ${lines(command)}  ${dim(`exit ${exitCode}`)}${tookText(durationMs)}`,
    ...outputLines(output, size),
    outputTruncated && size === inFull && ours('  (the middle of the output was not kept)'),
  ]);
}

function validationLines(validation: Validation, judgments: readonly Judgment[], size: Excerpt): Printable {
  const { name, message, exitCode = 0, durationMs, calls = [], logs = [], error, output } = validation;
  const failed = exitCode !== 0;
  const low = lowJudgments(validation, judgments);
  const isVoid = low.some(isUnjudged);
  const detailed = failed || size === inFull;
  const shownCalls = detailed ? calls.filter((call) => size === inFull || call.error !== undefined) : [];
  return stack([
    text`${mark(isVoid ? 'void' : failed || low.length > 0 ? 'failed' : 'passed')} ${name}${tookText(durationMs)}`,
    ...low.map((judgment) =>
      judgment.error === undefined
        ? text`  its judgment does not reach the threshold: ${scoreText(judgment)}`
        : ours('  it could not be judged'),
    ),
    ...outputLines(message, size),
    // The error repeats the message, with the stack. Without a judgment, the judge's own error says why.
    ...((size === inFull || message === undefined) && !isVoid ? outputLines(error?.text, size) : []),
    ...(size === inFull ? outputLines(output?.text, size) : []),
    ...firstOf(shownCalls, size === inFull ? calls.length : 2, (call) => callLines(call, size)),
    ...(detailed ? outputLines(logs.map(({ value }) => value?.text ?? '').join('\n'), size, 'logs') : []),
  ]);
}

function callLines(
  { method = 'call', index, input, output, error }: NonNullable<Validation['calls']>[number],
  size: Excerpt,
): Printable {
  return stack([
    text`  ${method} ${index}${ours(error === undefined ? '' : ' failed')}`,
    ...outputLines(input && questionText(input.text), size, 'input'),
    ...outputLines(output?.text, size, 'output'),
    ...outputLines(error?.text, size, 'error'),
  ]);
}

/**
 * What a model was asked is recorded as JSON, which has a prompt on one line. As YAML, its lines are lines.
 */
function questionText(input: string): string {
  if (!input.startsWith('{')) return input;
  try {
    return stringify(parseForeignJson(input), { blockQuote: 'literal', lineWidth: 0 });
  } catch {
    // It was cut, or the validator passed on a text of its own.
    return input;
  }
}

function judgmentLines(judgment: Judgment, size: Excerpt): Printable {
  const { name, score, choice, model, evaluator, durationMs, reason, error } = judgment;
  const by = present([score !== undefined && choice, model, evaluator]).join(', ');
  return stack([
    text`${mark(reachesThreshold(judgment) ? 'passed' : isUnjudged(judgment) ? 'void' : 'failed')} ${name}  ${scoreText(judgment)}  ${by}${tookText(durationMs)}`,
    ...outputLines(reason, size),
    ...outputLines(error, size),
  ]);
}

function outputLines(output: string | undefined, size: Excerpt, title?: string): Value[] {
  if (output === undefined || output.trim() === '') return [];
  const shown = excerpt(output, size);
  return title === undefined ? [text`  ${shown}`] : [text`  ${ours(title)}`, text`  ${shown}`];
}

/** The steps of a trial, one a line; undefined if its case has no steps. */
export function stepsSection(record: TrialRecord): Printable | undefined {
  const { steps } = record;
  if (!steps) return undefined;
  const ran = steps.filter(({ startedAt }) => startedAt !== undefined).length;
  const rows = steps.map((step) => rowOf(step, record));
  const body = table(['', 'result', { right: 'took' }, { right: 'tokens' }], rows);
  return section('steps', `${ran} of ${steps.length} ran`, [body, dim(legend)]);
}

const legend = '✓ reached its thresholds  ✗ did not  ○ void  · nothing to reach, or not run';

function rowOf(step: StepResult, record: TrialRecord): Value[] {
  const { name, startedAt, finishedAt } = step;
  const standing = stepStanding(step, record);
  const title = text`${markOf(standing)} ${name}`;
  if (startedAt === undefined || finishedAt === undefined) return [title, dim('not run'), '', ''];
  const { totalTokens = '' } = stepUsage(record, { startedAt, finishedAt });
  return [title, resultOf(step, record), duration(finishedAt - startedAt), String(totalTokens)];
}

function markOf(standing: StepStanding): Printable {
  return standing === 'no-threshold' || standing === 'not-run' ? dim('·') : mark(standing);
}

function resultOf(step: StepResult, record: TrialRecord): Value {
  const rewards = stepRewards(step, record);
  const { cause } = step;
  if (rewards.length > 0) return rewards.map(stepRewardText).join('; ');
  return cause ? text`${cause.kind}: ${firstLine(cause.message)}` : '';
}

/** How many checks of a grading are shown. */
const named = 8;

/** The later gradings of a trial beside the first one; undefined if there are none. */
export function gradingsSection(first: string, gradings: readonly LaterGrading[]): Printable | undefined {
  if (gradings.length === 0) return undefined;
  const body = gradings.toReversed().flatMap((grading) => gradingLines(first, grading));
  return section('graded again', plural(gradings.length, 'time'), body);
}

function gradingLines(first: string, grading: LaterGrading): Value[] {
  const { gradedAt, verdict, suite, notes, cause, checks, unreadable } = grading;
  const change = verdict === first ? ours('the same') : text`was ${ours(first)}`;
  const by = suite === undefined ? ours('as planned') : text`by ${suite}`;
  const changed = checks.filter((check) => check.changed);
  return present([
    text`${mark(verdict)} ${ours(verdict)}, ${change}  ${styled('dim', text`${ours(minute(gradedAt))} ${by}`)}`,
    unreadable !== undefined && text`  ${unreadable}`,
    cause && text`  ${cause.kind}, in ${cause.phase}: ${lines(cause.message)}`,
    ...firstOf(changed, named, checkLine),
    ...notes.map((note) => text`  note: ${note}`),
  ]);
}

function checkLine({ kind, name, was = 'not there', now = 'not there' }: CheckBeside): Printable {
  return text`  ${ours(`${kind}:`)} ${firstLine(name)}  ${was} → ${now}`;
}
