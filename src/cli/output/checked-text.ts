import {
  type CheckedCase,
  type CheckedState,
  namesText,
  soundnessOf,
  summedUp,
} from '../../check/checked-state.ts';
import { failureLines } from '../../record/failures.ts';
import { type Excerpt, excerpt, ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';
import { mappedLines } from './summary-table.ts';

/**
 * Everything that a check found: the table, the notes on each case, and the totals.
 *
 * @param allOutputs whether outputs of states that are as expected are shown too
 */
export function checkedText(checked: readonly CheckedCase[], allOutputs: boolean): Printable {
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
export function standingOf(one: CheckedCase): string {
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

export function remarkOn({ state, asExpected, verdicts, flaky, cause, timedOut }: CheckedState): string {
  // The cause shows whether the untouched workspace fails for the right reason.
  if (asExpected) return state === 'untouched' ? firstLine(cause) : '';
  const why = cause === undefined ? '' : `: ${firstLine(cause)}`;
  if (timedOut) return `NO VERDICT${why}`;
  if (flaky.length > 0) return `FLAKY, ${plural(flaky.length, 'check')}: ${flaky.join('; ')}`;
  if (verdicts.includes('void')) return `NO VERDICT${why}`;
  const passes = verdicts.includes('passed');
  if (state === 'untouched' && passes)
    return 'PASSES UNTOUCHED: nothing is left to do, or the checks check nothing';
  return state === 'untouched' ? `CANNOT PASS${why}` : `FAILS ALTHOUGH SOLVED${why}`;
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
