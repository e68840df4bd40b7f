import { failureLines } from '../../record/failures.ts';
import { type Excerpt, excerpt, ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';
import { mappedLines } from '../output/summary-table.ts';
import type { CheckedCase, CheckedState } from './checked-state.ts';

/** All that a check found: the table, then what there is to know of each case. */
export function checkedText(checked: readonly CheckedCase[]): Printable {
  return stack([
    checkTable(checked),
    ...notesOf(checked),
    ...judgedLines(checked),
    ...mappedLines(checked),
    ...outputsOf(checked),
  ]);
}

/** Without a solution, checks that nobody can pass look the same as good ones. */
export function standingOf({ states }: CheckedCase): string {
  if (!states.every(({ asExpected }) => asExpected)) return 'NOT OK';
  return states.length > 1 ? 'ok' : 'ok, but without a solution nothing shows that it can be solved';
}

function checkTable(checked: readonly CheckedCase[]): Printable {
  const rows = checked.flatMap(({ id, states }) => [
    ...states.map((state) => [id, state.state, verdictsOf(state), remarkOn(state)]),
    ...(states.length > 1 ? [] : [[id, 'solved', ours('–'), 'the case has no solution']]),
  ]);
  const titles = ['case', 'workspace', 'verdict', 'remark'];
  return table(
    titles.map((title) => ({ title })),
    rows,
  );
}

/** What an author should know of a case, sound or not. */
function notesOf(checked: readonly CheckedCase[]): Printable[] {
  return checked.flatMap(({ id, states }) => {
    const notes = new Set(states.flatMap(({ notes = [] }) => notes));
    return [...notes].map((note) => text`${id}: ${note}`);
  });
}

/** What judges gave in each state, and which of them tell no state from the other. */
function judgedLines(checked: readonly CheckedCase[]): Printable[] {
  return checked.flatMap(({ id, states }) => {
    const names = new Set(states.flatMap(({ judgments = [] }) => judgments.map(({ name }) => name)));
    return [...names].map((name) => {
      const given = states.flatMap(({ state, judgments = [] }) =>
        judgments.filter((one) => one.name === name).map((one) => ({ state, ...one })),
      );
      const scores = given.map(({ state, score }) => `${state} ${score}`).join(', ');
      const isBlind = given.some(({ state, reaches }) => state === 'untouched' && reaches);
      const told = isBlind ? '; it passes work that nobody did' : '';
      return text`${id}, judgment "${name}": ${scores}${told}`;
    });
  });
}

/** Whole lines: an assertion is often long, and its end says what was found. */
const outputSize: Excerpt = { first: 6, last: 14, characters: 2_000, besides: failureLines };

/** Of up to this many sound cases, an author also sees what the gradings printed that failed as they should. */
const fewCases = 3;

/**
 * What gradings printed: once for all that printed the same. Of cases that are not sound, all that did not
 * pass; if there are none, of the others, if they are few.
 */
function outputsOf(checked: readonly CheckedCase[]): Printable[] {
  const isSound = ({ states }: CheckedCase) => states.every(({ asExpected }) => asExpected);
  const few = checked.length <= fewCases ? checked : [];
  const shown = checked.every(isSound) ? few : checked.filter((one) => !isSound(one));
  const printedBy = new Map<string, Map<string, string[]>>();
  for (const { id, states } of shown) {
    for (const { state, output = '' } of states) {
      if (output.trim() === '') continue;
      const ids = printedBy.get(output) ?? new Map<string, string[]>();
      printedBy.set(output, ids.set(id, [...(ids.get(id) ?? []), state]));
    }
  }
  const solutions = shown.flatMap(({ id, states }) =>
    states.flatMap(({ asExpected, solution }) =>
      asExpected || solution === undefined
        ? []
        : [stack([text`${id}, its solution failed:`, excerpt(solution, outputSize)])],
    ),
  );
  const outputs = [...printedBy].map(([output, ids]) =>
    stack([text`${printersText(ids)} printed:`, excerpt(output, outputSize)]),
  );
  return [...solutions, ...outputs];
}

/** How many cases a line names. */
const namedCases = 5;

/** `a, untouched and solved; b, untouched` */
function printersText(ids: ReadonlyMap<string, readonly string[]>): Printable {
  const named = [...ids].slice(0, namedCases).map(([id, states]) => `${id}, ${states.join(' and ')}`);
  const more = ids.size - named.length;
  return text`${named.join('; ')}${ours(more > 0 ? ` and ${plural(more, 'more case')}` : ',')}`;
}

function verdictsOf({ verdicts }: CheckedState): string {
  const counts = new Map<string, number>();
  for (const verdict of verdicts) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts]
    .map(([verdict, count]) => (verdicts.length > 1 ? `${count} × ${verdict}` : verdict))
    .join(', ');
}

export function remarkOn({ state, asExpected, verdicts, flaky, cause, timedOut }: CheckedState): string {
  // Why it fails tells whether it fails for the right reason.
  if (asExpected) return state === 'untouched' ? firstLine(cause) : '';
  const told = cause === undefined ? '' : `: ${firstLine(cause)}`;
  if (timedOut) return `NO VERDICT${told}`;
  if (flaky.length > 0) return `FLAKY, ${plural(flaky.length, 'check')}: ${flaky.join('; ')}`;
  if (verdicts.includes('void')) return `NO VERDICT${told}`;
  const passes = verdicts.includes('passed');
  if (state === 'untouched' && passes)
    return 'PASSES UNTOUCHED: nothing is left to do, or the checks check nothing';
  return state === 'untouched' ? `FAILS WHATEVER IS DONE${told}` : `FAILS ALTHOUGH SOLVED${told}`;
}

function firstLine(text = ''): string {
  return text.split('\n', 1)[0] ?? '';
}
