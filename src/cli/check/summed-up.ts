import { joined, ours, type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { type CheckedCase, type Soundness, soundnessOf } from './checked-state.ts';

/** One line: `3 of 3 cases are sound`, or how many are not, and which. */
export function summedUp(checked: readonly CheckedCase[]): Printable {
  const all = plural(checked.length, 'case');
  const idsOf = (wanted: Soundness) =>
    checked.filter((one) => soundnessOf(one) === wanted).map(({ id }) => id);
  const [wrong, undecided] = [idsOf('not sound'), idsOf('undecided')];
  const parts = [
    ...(wrong.length > 0
      ? [
          text`${wrong.length} of ${all} ${ours(wrong.length === 1 ? 'is' : 'are')} not sound: ${namesText(wrong)}`,
        ]
      : []),
    ...(undecided.length > 0
      ? [
          text`${undecided.length} of ${all} ${ours(undecided.length === 1 ? 'has' : 'have')} no verdict: ${namesText(undecided)}`,
        ]
      : []),
  ];
  if (parts.length > 0) return joined(parts, '; ');
  const sound = text`${checked.length} of ${all} ${ours(checked.length === 1 ? 'is' : 'are')} sound`;
  const unproven = checked.filter(({ states }) => states.length === 1).map(({ id }) => id);
  if (unproven.length === 0) return sound;
  return text`${sound}, but without a solution nothing shows that these can be solved: ${namesText(unproven)}`;
}

/** How many cases a line names. */
const namedCases = 5;

/** `a, b, c, d, e and 4 more cases` */
export function namesText(names: readonly string[], separator = ', '): Printable {
  const more = names.length - namedCases;
  const named = text`${names.slice(0, namedCases).join(separator)}`;
  return more > 0 ? text`${named} and ${plural(more, 'more case')}` : named;
}
