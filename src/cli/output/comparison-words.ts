import type { Comparison, RateDifference } from '../../comparison/comparison.ts';
import type { Interval } from '../../stats/interval.ts';
import { ours, type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';

/** Below this number of cases, an interval says little. */
const fewCases = 10;

/** The result in one sentence. */
export function differenceSentence({ value, low, high, finding, cases }: RateDifference): Printable {
  if (value === undefined || low === undefined || high === undefined)
    return ours('A and B have no case in common that can be compared, with a verdict on both sides.');
  const over = text`over ${plural(cases, 'case')}`;
  if (finding === 'noise') {
    const range = `${signed(value)} points (${signed(low)} to ${signed(high)})`;
    return text`No difference can be told from noise: B - A is ${ours(range)}, ${over}.`;
  }
  const [near, far] = finding === 'worse' ? [-high, -low] : [low, high];
  const range = `${points(Math.abs(value))} points (${points(near)} to ${points(far)})`;
  return text`B is ${ours(finding)} by ${ours(range)}, ${over}.`;
}

/** What {@link differenceSentence} does not show, if it finds no difference. */
export function explained({ difference }: Comparison): Printable[] {
  const { finding, low = 0, high = 0 } = difference;
  if (finding !== 'noise') return [];
  const range = `${signed(low)} to ${signed(high)}`;
  return [text`That does not show that they are equal: the true difference may be ${ours(range)} points.`];
}

/** A warning if there are few cases. */
export function fewCasesOf({ difference: { cases, finding } }: Comparison): Printable[] {
  return cases < fewCases && finding !== 'nothing-in-common'
    ? [text`Only ${plural(cases, 'case')}: other cases of the same kind may give another result.`]
    : [];
}

/** `12 to 34`. */
export function rangeOf(
  { low, high }: Partial<Interval>,
  shown: (value: number) => string,
  missing = '?',
): string {
  return `${low === undefined ? missing : shown(low)} to ${high === undefined ? missing : shown(high)}`;
}

export function shownP(p: number): string {
  return p < 0.001 ? 'p < 0.001' : `p = ${p.toFixed(3)}`;
}

/** Percentage points with a sign: `+3`, `-12`, `0`; one decimal below 10. */
function signed(difference: number): string {
  const shown = points(Math.abs(difference));
  if (shown === '0') return '0';
  return `${difference < 0 ? '-' : '+'}${shown}`;
}

function points(difference: number): string {
  const value = difference * 100;
  return String(Number(value.toFixed(value < 10 ? 1 : 0)));
}
