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
  return section('steps', `${ran} of ${steps.length} ran`, [body]);
}

function rowOf(step: StepResult, record: TrialRecord): Value[] {
  const { name, startedAt, finishedAt, verdict = 'void' } = step;
  if (startedAt === undefined || finishedAt === undefined)
    return [text`${styled('dim', ours('·'))} ${name}`, styled('dim', ours('not run')), '', ''];
  const { totalTokens } = stepUsage(record, { startedAt, finishedAt });
  return [
    text`${mark(verdict)} ${name}`,
    resultOf(step),
    duration(finishedAt - startedAt),
    totalTokens === undefined ? '' : String(totalTokens),
  ];
}

function resultOf({ rewards, cause }: StepResult): Value {
  if (rewards)
    return Object.entries(rewards)
      .map(([name, reward]) => `${name} ${reward}`)
      .join(', ');
  return cause ? text`${cause.kind}: ${firstLine(cause.message)}` : '';
}
