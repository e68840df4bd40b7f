import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OutputCapture } from '../src/base/output-capture.ts';

function capture(cap: number, chunks: Iterable<Uint8Array>) {
  const output = new OutputCapture(cap);
  for (const chunk of chunks) output.push(Buffer.from(chunk));
  return output.result();
}

test('the first and the last bytes are kept, and all are counted, however they were cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 30 })),
      fc.integer({ min: 2, max: 64 }),
      (chunks, cap) => {
        const all = Buffer.concat(chunks);
        const { bytes, truncated, totalBytes } = capture(cap, chunks);
        expect(totalBytes).toBe(all.length);
        expect(truncated).toBe(all.length > cap);
        const head = Math.ceil(cap / 2);
        const kept =
          all.length <= cap
            ? all
            : Buffer.concat([all.subarray(0, head), all.subarray(all.length - (cap - head))]);
        expect(bytes.equals(kept)).toBe(true);
      },
    ),
  );
});

test('a character cut by the network is whole in the text', () => {
  const euro = Buffer.from('a€b');
  for (let at = 0; at <= euro.length; at += 1) {
    expect(capture(100, [euro.subarray(0, at), euro.subarray(at)]).text).toBe('a€b');
  }
});

test('a truncated text says how much was cut and shows no damaged character', () => {
  for (const lead of ['', 'x', 'xy']) {
    const { text } = capture(20, [Buffer.from(lead + '€'.repeat(100))]);
    expect(text).toMatch(/\n\[\.\.\. \d+ bytes cut \.\.\.\]\n/);
    expect(text).not.toContain('\ufffd');
  }
});

test('a byte order mark is part of the output', () => {
  expect(capture(100, [Buffer.from('\ufeffhi')]).text).toBe('\ufeffhi');
});

test('memory stays at the cap while much is pushed', () => {
  const output = new OutputCapture(1024);
  const chunk = Buffer.alloc(64 * 1024, 'x');
  const before = process.memoryUsage().arrayBuffers;
  for (let count = 0; count < 2_000; count += 1) output.push(chunk);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 2 ** 20);
  expect(output.result().totalBytes).toBe(2_000 * chunk.length);
});
