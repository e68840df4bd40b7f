import type { LeftOutTrial, RegradedTrial, RegradedVerdict } from '../../agent/regrade-batch.ts';
import type { ListedTrial } from '../../ledger/find.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';
import type { JunitBatch } from './junit.ts';

/** What a regrade of a batch gave. */
export interface RegradedBatch {
  batchId: string;
  /** The suite file that said how to grade; undefined for the plan of the batch. */
  suite: string | undefined;
  graded: RegradedTrial[];
  leftOut: LeftOutTrial[];
}

export interface RegradeSums {
  graded: number;
  changed: number;
  leftOut: number;
  passed: number;
  failed: number;
  void: number;
  /** Passed of scored trials, 0 to 1; undefined if none was scored. */
  passRate: number | undefined;
  /** The pass rate of the first gradings of these trials. */
  passRateBefore: number | undefined;
}

export function regradeSums({ graded, leftOut }: RegradedBatch): RegradeSums {
  const now = graded.map((one) => one.now.verdict);
  const count = (verdict: RegradedVerdict['verdict']) => now.filter((one) => one === verdict).length;
  return {
    graded: graded.length,
    changed: graded.filter(hasChanged).length,
    leftOut: leftOut.length,
    passed: count('passed'),
    failed: count('failed'),
    void: count('void'),
    passRate: passRateOf(now),
    passRateBefore: passRateOf(graded.map((one) => one.was.verdict)),
  };
}

function passRateOf(verdicts: readonly RegradedVerdict['verdict'][]): number | undefined {
  const scored = verdicts.filter((verdict) => verdict !== 'void');
  if (scored.length === 0) return undefined;
  return scored.filter((verdict) => verdict === 'passed').length / scored.length;
}

function hasChanged({ was, now }: RegradedTrial): boolean {
  return was.verdict !== now.verdict;
}

/** The verdicts side by side, those that changed first. */
export function regradeText(batch: RegradedBatch): Printable {
  const { graded, leftOut, suite } = batch;
  const inOrder = graded.toSorted((one, other) => Number(hasChanged(other)) - Number(hasChanged(one)));
  const rows = inOrder.map((one) => [
    nameOf(one.trial),
    one.was.verdict,
    hasChanged(one) ? ours(`→ ${one.now.verdict}`) : ours('the same'),
    reasonOf(one),
  ]);
  const titles = ['trial', 'was', 'is now', 'why'];
  const notes = [
    ...Map.groupBy(
      graded.flatMap((one) => one.notes),
      (note) => note,
    ),
  ];
  return stack([
    ...(rows.length > 0 ? [table(titles, rows), ours('')] : []),
    sumsText(regradeSums(batch)),
    suite === undefined ? ours('graded as the batch was planned') : text`graded as ${suite} says`,
    ...thresholdLines(graded),
    ...notes.map(([note, all]) => text`note: ${note} (${plural(all.length, 'trial')})`),
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

function nameOf({ caseId, variant, ordinal }: ListedTrial): Printable {
  return text`${caseId} · ${variant} #${ordinal}`;
}

/** The reason for the new verdict; if the trial passes now, why it did not before. */
function reasonOf({ was, now }: RegradedTrial): Printable {
  const reason = whyOf(now);
  if (reason !== undefined) return text`${reason}`;
  const earlier = now.verdict === 'passed' && was.verdict !== 'passed' ? whyOf(was) : undefined;
  return earlier === undefined ? ours('') : text`was: ${earlier}`;
}

/** Why a grading did not pass, on one line; undefined if it passed. */
export function whyOf({ cause, failures }: RegradedVerdict): string | undefined {
  const [first] = cause ? [`${cause.kind}, in ${cause.phase}: ${cause.message}`] : failures;
  return first?.trim().split('\n', 1)[0];
}

function sumsText({ graded, changed, leftOut, ...sums }: RegradeSums): Printable {
  const rate = (value: number | undefined) => (value === undefined ? '–' : `${Math.round(value * 100)} %`);
  const rates = `pass rate ${rate(sums.passRateBefore)} → ${rate(sums.passRate)}`;
  const out = leftOut === 0 ? '' : `; ${plural(leftOut, 'trial')} left out`;
  return ours(`${plural(graded, 'trial')} graded again, ${changed} changed; ${rates}${out}`);
}

/** How many of the trials that were left out for the same reason are named. */
const named = 5;

function leftOutLines(leftOut: readonly LeftOutTrial[]): Printable[] {
  const byReason = [...Map.groupBy(leftOut, ({ why }) => why)];
  return byReason.flatMap(([why, all]) => [
    text`left out ${plural(all.length, 'trial')}: ${why}`,
    ...all.slice(0, named).map(({ trial }) => text`  ${nameOf(trial)}`),
    ...(all.length > named ? [ours(`  … and ${all.length - named} more`)] : []),
  ]);
}

/** What a regrade gave, as one JSON document. */
export function regradeDocument(batch: RegradedBatch): unknown {
  const { batchId, suite, graded, leftOut } = batch;
  const named = ({ runId, caseId, variant, ordinal }: ListedTrial) => ({ runId, caseId, variant, ordinal });
  return {
    batchId,
    suite,
    ...regradeSums(batch),
    trials: graded.map(({ trial, was, now, notes, thresholds, grading }) => ({
      ...named(trial),
      changed: was.verdict !== now.verdict,
      ...{ was, now, notes, thresholds },
      gradedAt: grading.gradedAt,
      recordBlob: grading.result,
    })),
    leftOutTrials: leftOut.map(({ trial, why }) => ({ ...named(trial), why })),
  };
}

/** The new gradings as a batch for JUnit. */
export function regradeJunit({ batchId, graded }: RegradedBatch): JunitBatch {
  const byRun = [...Map.groupBy(graded, ({ trial }) => trial.runId).values()];
  const runs = byRun.map((trials) => {
    const count = (verdict: string) => trials.filter(({ now }) => now.verdict === verdict).length;
    const [{ caseId = '', variant = '' } = {}] = trials.map(({ trial }) => trial);
    return {
      case: caseId,
      variant,
      failed: count('failed'),
      void: count('void'),
      durationMs: trials.reduce((sum, { now }) => sum + now.durationMs, 0),
      trials: trials.map(({ trial, now }) => ({ ordinal: trial.ordinal, ...now })),
    };
  });
  const { passed, failed, void: voided } = regradeSums({ batchId, graded, leftOut: [], suite: undefined });
  return { batchId, passed, failed, void: voided, runs };
}
