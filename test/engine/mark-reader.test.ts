import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type MarkedPiece, MarkReader } from '../../src/engine/exec/mark-reader.ts';

const secretMark = 'aab';

function read(chunks: Buffer[]): (string | string[])[] {
  const reader = new MarkReader(secretMark);
  const pieces: MarkedPiece[] = [...chunks.flatMap((chunk) => [...reader.read(chunk)]), ...reader.end()];
  const merged: (string | string[])[] = [];
  for (const piece of pieces) {
    const last = merged.at(-1);
    if (piece.kind === 'mark') merged.push(piece.fields);
    else if (typeof last === 'string') merged[merged.length - 1] = last + piece.bytes.toString();
    else merged.push(piece.bytes.toString());
  }
  return merged;
}

test('marks are found and output is whole, wherever the stream is cut', () => {
  // Letters of the secret itself, so that false beginnings abound.
  const output = fc.string({ unit: fc.constantFrom('a', 'c', '\n'), maxLength: 8 });
  fc.assert(
    fc.property(fc.array(output, { minLength: 1, maxLength: 5 }), fc.array(fc.nat(80)), (texts, places) => {
      const wire = Buffer.from(texts.join(`${secretMark} E 0 17\n`));
      const borders = [0, ...places.map((at) => at % (wire.length + 1)).sort((a, b) => a - b), wire.length];
      const chunks = borders.slice(1).map((end, index) => wire.subarray(borders[index], end));
      const expected = texts.flatMap((text, index) => [
        ...(index > 0 ? [['E', '0', '17']] : []),
        ...(text === '' ? [] : [text]),
      ]);
      expect(read(chunks)).toEqual(expected);
    }),
  );
});

test('a mark is found behind output that has no newline at its end', () => {
  expect(read([Buffer.from('no newlineaab B 0 1 5\nnext')])).toEqual([
    'no newline',
    ['B', '0', '1', '5'],
    'next',
  ]);
});

test('what looks like a mark but lacks the secret is output', () => {
  expect(read([Buffer.from('aac E 0 17\n')])).toEqual(['aac E 0 17\n']);
});
