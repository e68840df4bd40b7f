import { expect, test } from 'vitest';
import { allThrown, isExpected, messageOf, OffsiteError } from '../../src/base/offsite-error.ts';
import { printFailure } from '../../src/cli/failure.ts';
import { Interrupted } from '../../src/cli/interruption.ts';
import { Output } from '../../src/text/output.ts';

const engineDown = (doing: string) =>
  new OffsiteError(`the engine is down while ${doing}`, {
    code: 'DOWN',
    kind: 'infrastructure',
    hint: 'Start it.',
  });

/** What `using` throws if the work fails, and then so does the disposal of each resource. */
async function thrownBy(work: unknown, ...disposals: unknown[]): Promise<unknown> {
  try {
    await using opened = new AsyncDisposableStack();
    for (const error of disposals.toReversed())
      opened.defer(() => {
        throw error;
      });
    throw work;
  } catch (error) {
    return error;
  }
}

function printed(error: unknown): { code: number; text: string } {
  let text = '';
  const code = printFailure(error, new Output({ write: (characters) => (text += characters) }));
  return { code, text };
}

test('errors of disposal come after the one that ended the work', async () => {
  const [first, second, third] = [new Error('1'), engineDown('2'), engineDown('3')];
  const thrown = await thrownBy(first, second, third);
  expect(thrown).toBeInstanceOf(SuppressedError);
  expect(allThrown(thrown)).toEqual([first, second, third]);
  expect([messageOf(thrown), isExpected(thrown)]).toEqual(['1', false]);
  expect(isExpected(await thrownBy(second, first))).toBe(true);
});

test('an interrupted command that cannot clean up says so, with the exit code of the interruption', async () => {
  const { code, text } = printed(await thrownBy(new Interrupted('SIGTERM'), engineDown('removing')));
  expect(code).toBe(130);
  expect(text).toBe('  and while ending: the engine is down while removing\n');
});

test('what ended a command comes first; the same failure is told once', async () => {
  const thrown = await thrownBy(engineDown('working'), engineDown('working'), engineDown('removing'));
  const { code, text } = printed(thrown);
  expect(code).toBe(3);
  expect(text.trimEnd().split('\n')).toEqual([
    'error: the engine is down while working',
    '  Start it.',
    '  and while ending: the engine is down while removing',
  ]);
});

test('a defect during disposal is told as one, after what ended the command', async () => {
  const input = new OffsiteError('no such file', { code: 'NO_FILE', kind: 'input' });
  const { code, text } = printed(await thrownBy(input, new TypeError('x is not a function')));
  expect(code).toBe(2);
  expect(text).toMatch(
    /^error: no such file\nerror: unexpected error; this is a defect.*x is not a function/s,
  );
});
