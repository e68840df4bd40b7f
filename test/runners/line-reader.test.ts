import { expect, test } from 'vitest';
import { LineReader } from '../../src/base/line-reader.ts';

function linesOf(
  chunks: Iterable<Buffer>,
  longest = Number.POSITIVE_INFINITY,
): { lines: string[]; overlong: number } {
  const lines: string[] = [];
  let overlong = 0;
  const reader = new LineReader(
    (line) => lines.push(line),
    () => {
      overlong += 1;
    },
    longest,
  );
  for (const chunk of chunks) reader.push(chunk);
  reader.end();
  return { lines, overlong };
}

test('a chunk may be used again by its owner once it has been taken', () => {
  const lines: string[] = [];
  const reader = new LineReader(
    (line) => lines.push(line),
    () => undefined,
    10,
  );
  const lent = Buffer.from('one');
  reader.push(lent);
  lent.fill('x');
  reader.end();
  expect(lines).toEqual(['one']);
});

test('a line of megabytes is taken, and one that never ends is dropped and told of, with those after it taken', () => {
  const megabytes = 'x'.repeat(5 * 2 ** 20);
  const chunks = [megabytes, '\n', 'y'.repeat(70), 'y'.repeat(70), '\nlast'].map((text) => Buffer.from(text));
  expect(linesOf(chunks)).toMatchObject({ overlong: 0, lines: [megabytes, 'y'.repeat(140), 'last'] });
  expect(linesOf(chunks, 100)).toEqual({ overlong: 2, lines: ['last'] });
});
