import { failureLines } from '../../record/failures.ts';
import { type Excerpt, excerpt, type Printable, stack, text } from '../../text/printable.ts';
import type { CheckedCase } from './checked-state.ts';
import { namesText } from './summed-up.ts';

/** Whole lines: an assertion is often long, and its end says what was found. */
const outputSize: Excerpt = { first: 6, last: 14, characters: 2_000, besides: failureLines };

/**
 * What gradings printed. Equal outputs are shown once. Without `all`, outputs of states that are as expected
 * are left out: an untouched case should fail, but its output looks like a problem.
 */
export function outputsOf(checked: readonly CheckedCase[], all: boolean): Printable[] {
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
