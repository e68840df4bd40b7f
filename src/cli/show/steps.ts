import { type StepStanding, stepRewards, stepRewardText, stepStanding } from '../../record/step-standing.ts';
import type { StepResult, TrialRecord } from '../../record/trial-record.ts';
import { stepUsage } from '../../record/usage.ts';
import { ours, type Printable, styled, text, type Value } from '../../text/printable.ts';
import { duration } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';
import { firstLine, mark, section } from './layout.ts';

/** The steps of a trial, one a line; undefined if its case has no steps. */
export function stepsSection(record: TrialRecord): Printable | undefined {
  const { steps } = record;
  if (!steps) return undefined;
  const ran = steps.filter(({ startedAt }) => startedAt !== undefined).length;
  const columns = [
    { title: '' },
    { title: 'result' },
    { title: 'took', align: 'right' as const },
    { title: 'tokens', align: 'right' as const },
  ];
  const body = table(
    columns,
    steps.map((step) => rowOf(step, record)),
  );
  return section('steps', `${ran} of ${steps.length} ran`, [body, styled('dim', ours(legend))]);
}

const legend = '✓ reached its thresholds  ✗ did not  ○ void  · nothing to reach, or not run';

function rowOf(step: StepResult, record: TrialRecord): Value[] {
  const { name, startedAt, finishedAt } = step;
  const standing = stepStanding(step, record);
  const title = text`${markOf(standing)} ${name}`;
  if (startedAt === undefined || finishedAt === undefined)
    return [title, styled('dim', ours('not run')), '', ''];
  const { totalTokens } = stepUsage(record, { startedAt, finishedAt });
  return [
    title,
    resultOf(step, record),
    duration(finishedAt - startedAt),
    totalTokens === undefined ? '' : String(totalTokens),
  ];
}

function markOf(standing: StepStanding): Printable {
  return standing === 'no-threshold' || standing === 'not-run' ? styled('dim', ours('·')) : mark(standing);
}

function resultOf(step: StepResult, record: TrialRecord): Value {
  const rewards = stepRewards(step, record);
  const { cause } = step;
  if (rewards.length > 0) return rewards.map(stepRewardText).join('; ');
  return cause ? text`${cause.kind}: ${firstLine(cause.message)}` : '';
}
