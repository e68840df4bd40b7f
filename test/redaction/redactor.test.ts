import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Redactor } from '../../src/redaction/redactor.ts';
import { runs } from '../short-tests.ts';

const secret = 'sk-live/Ab+9"x y';

async function redacted(redactor: Redactor, pieces: readonly Uint8Array[]): Promise<string> {
  const parts: Uint8Array[] = [];
  async function* source() {
    yield* pieces;
  }
  for await (const part of redactor.bytes(source())) parts.push(part);
  return Buffer.concat(parts).toString();
}

test('a secret is taken out of a value as deep as any record', () => {
  const lists = (inner: string) => `${'['.repeat(512)}"${inner}"${']'.repeat(512)}`;
  expect(new Redactor(['sk-secret-1']).json(JSON.parse(lists('a sk-secret-1')))).toBe(lists('a [redacted]'));
});

describe('a known secret', () => {
  test.each([
    ['in JSON', JSON.stringify({ key: secret })],
    ['in a URL', `https://x.example/?key=${encodeURIComponent(secret)}&a=b`],
    ['in a form', new URLSearchParams({ key: secret }).toString()],
    ['in the base64 of a header', Buffer.from(`Bearer ${secret}, and more`).toString('base64')],
  ])('is taken out %s', async (_, text) => {
    const redactor = new Redactor([secret]);
    const result = redactor.text(`before ${text} after`);
    expect(result).toMatch(/^before .*\[redacted\].* after$/);
    expect(await redacted(redactor, [Buffer.from(`before ${text} after`)])).toBe(result);
  });

  test('is taken out of a stream wherever that is cut, once or at every byte', async () => {
    const redactor = new Redactor([secret, 'sk-live/Ab+9"x y-longer', 'another-one']);
    const text = `x${secret}${secret}-longer sk-live another-oneanother-on`;
    const whole = Buffer.from(text);
    const expected = 'x[redacted][redacted] sk-live [redacted]another-on';
    expect(redactor.text(text)).toBe(expected);
    for (let first = 0; first <= whole.length; first++) {
      for (let second = first; second <= whole.length; second++) {
        const pieces = [whole.subarray(0, first), whole.subarray(first, second), whole.subarray(second)];
        expect(await redacted(redactor, pieces)).toBe(expected);
      }
    }
    expect(
      await redacted(
        redactor,
        [...whole].map((byte) => Buffer.of(byte)),
      ),
    ).toBe(expected);
  });

  test('never leaves a text or a stream with it, whatever stands around it', async () => {
    // Half of them are made of what begins, ends or separates escapes.
    const signs = fc.constantFrom(...'\\%&#x0u4;ab \n\0+/"é');
    const around = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.string({ unit: signs, maxLength: 6 }),
    );
    // How many backslashes there are is not told apart, so that they do not count either.
    const value = fc
      .oneof(
        fc.string({ minLength: 6, maxLength: 40 }),
        fc.string({ unit: signs, minLength: 6, maxLength: 16 }),
      )
      .filter((text) => text.replaceAll('\\', '').length >= 6 && !/^\\|\\$/.test(text));
    await fc.assert(
      fc.asyncProperty(value, around, around, fc.nat(200), async (hidden, before, after, cut) => {
        const redactor = new Redactor([hidden]);
        const bytes = Buffer.from(`${before}${hidden}${after}`);
        const streamed = await redacted(redactor, [bytes.subarray(0, cut), bytes.subarray(cut)]);
        expect(streamed).toBe(await redacted(redactor, [bytes]));
        // What is found of a value that is itself part of the mark, or of its neighbours, is no leak.
        fc.pre(!`${before}[redacted]${after}`.includes(hidden));
        expect(streamed.includes(hidden)).toBe(false);
      }),
      { numRuns: runs(3000) },
    );
  });

  test('that is empty or very short is no secret', () => {
    expect(new Redactor(['', 'abc']).text('abc and abc')).toBe('abc and abc');
  });

  test('leaves binary bytes as they are', async () => {
    const bytes = Buffer.from(Array.from({ length: 512 }, (_, n) => n % 256));
    const redactor = new Redactor([secret]);
    const parts: Uint8Array[] = [];
    for await (const part of redactor.bytes(
      (async function* () {
        yield bytes;
      })(),
    )) {
      parts.push(part);
    }
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
  });
});
