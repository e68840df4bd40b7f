import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { redactionOf } from '../../src/gateway/redaction.ts';
import { Redactor } from '../../src/redaction/redactor.ts';

const key = 'sk-live/Ab+9%x_y~Q"z';

/** One character of a key, as programs write it. The index chooses how. */
const writings: ((character: string) => string)[] = [
  (character) => character,
  (character) => `\\u${hex(character, 4)}`,
  (character) => `\\u${hex(character, 4).toUpperCase()}`,
  (character) => `\\\\u${hex(character, 4)}`,
  (character) => `%${hex(character, 2)}`,
  (character) => `%${hex(character, 2).toUpperCase()}`,
  (character) => `%25${hex(character, 2)}`,
  (character) => (/["/]/.test(character) ? `\\${character}` : character),
  (character) => (/["/]/.test(character) ? `\\\\\\${character}` : character),
];

function hex(character: string, digits: number): string {
  return character.charCodeAt(0).toString(16).padStart(digits, '0');
}

/** Words that hold no `Q`, in any encoding that is looked for. */
const word = fc.constantFrom(
  ...['sk-', 'sk-live', 'sk-live/Ab', '\\', '\\\\', '%', '%2', '%25', '\\u', '\\u00', '\\u0073', '\\"'],
  ...['c2st', 'text ', '\n', '\\n', 'é', '"', '/', 'data: {"a":"b"}', '736b2d'],
);

const secret = fc
  .array(fc.constantFrom(...'abcXYZ019-_./+%"~=:! '), { minLength: 12, maxLength: 60 })
  .map((letters) => `${letters.join('')}Q`);

const sizes = fc.array(fc.nat(40), { maxLength: 12 });

function cut(whole: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const length of lengths) {
    pieces.push(whole.subarray(from, from + length));
    from += length;
  }
  return [...pieces, whole.subarray(from)];
}

async function streamed(redactor: Redactor, pieces: readonly Buffer[]): Promise<string> {
  const parts: Uint8Array[] = [];
  async function* source() {
    yield* pieces;
  }
  for await (const part of redactor.bytes(source())) parts.push(part);
  return Buffer.concat(parts).toString();
}

function relayed(hidden: string, pieces: readonly Buffer[]): string {
  const stream = redactionOf(hidden).stream();
  return Buffer.concat([...pieces.map((piece) => stream.push(piece)), stream.end()]).toString();
}

describe('a key is taken out', () => {
  test.each([
    ['with slashes escaped', key.replaceAll('/', '\\/').replaceAll('"', '\\"')],
    ['in JSON in JSON', JSON.stringify(JSON.stringify(key).replaceAll('/', '\\/')).slice(3, -3)],
    [
      'in lower-case percent escapes',
      encodeURIComponent(key).toLowerCase().replace('ab', 'Ab').replace('q', 'Q'),
    ],
    ['with every character percent-encoded', [...key].map((one) => `%${hex(one, 2)}`).join('')],
    ['percent-encoded twice', encodeURIComponent(encodeURIComponent(key))],
    ['with every character as \\uXXXX', [...key].map((one) => `\\u${hex(one, 4).toUpperCase()}`).join('')],
    ['in hexadecimal of either case', Buffer.from(key).toString('hex').toUpperCase()],
    [
      'in base64 with its slashes escaped',
      Buffer.from(`${key}?>?>`).toString('base64').replaceAll('/', '\\/'),
    ],
    ['in base64, percent-encoded', encodeURIComponent(Buffer.from(`??${key}`).toString('base64'))],
    ['in base64 broken into lines', Buffer.from(key.repeat(4)).toString('base64').replace(/.{19}/g, '$&\n')],
  ])('%s', async (_, written) => {
    const redactor = new Redactor([key]);
    const text = `before ${written} after`;
    expect(redactor.text(text)).toMatch(/^before .{0,4}\[redacted\].* after$/s);
    expect(redactor.text(text)).not.toContain(written.slice(4, -4));
    const pieces = [...Buffer.from(text)].map((byte) => Buffer.of(byte));
    expect(await streamed(redactor, pieces)).toBe(redactor.text(text));
    expect(relayed(key, pieces)).toBe(redactor.text(text));
  });

  test('however each of its characters is written, and wherever a stream is cut', async () => {
    const ways = fc.array(fc.nat(writings.length - 1), { minLength: 61, maxLength: 61 });
    await fc.assert(
      fc.asyncProperty(secret, ways, word, word, sizes, async (hidden, chosen, before, after, lengths) => {
        const written = [...hidden].map((one, index) => writings[chosen[index] ?? 0]?.(one)).join('');
        const text = `${before} ${written} ${after}`;
        const expected = `${before} [redacted] ${after}`;
        const pieces = cut(Buffer.from(text), lengths);
        const redactor = new Redactor([hidden]);
        fc.pre(!/^ /.test(hidden));
        expect(redactor.text(text)).toBe(expected);
        expect(await streamed(redactor, pieces)).toBe(expected);
        expect(relayed(hidden, pieces)).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  test('from base64 of either alphabet, whatever stands before and after it', () => {
    const around = fc.string({ unit: 'binary', maxLength: 8 });
    fc.assert(
      fc.property(
        secret,
        around,
        around,
        fc.constantFrom('base64', 'base64url'),
        (hidden, before, after, form) => {
          const text = Buffer.from(`${before}${hidden}${after}`).toString(form as BufferEncoding);
          const left = new Redactor([hidden]).text(text);
          expect(left).toContain('[redacted]');
          // What stays on either side is what the neighbours' own letters say.
          const [head = '', tail = ''] = left.split('[redacted]');
          const decoded = Buffer.from(head, 'base64').length + Buffer.from(tail, 'base64').length;
          expect(decoded).toBeLessThanOrEqual(Buffer.byteLength(before) + Buffer.byteLength(after) + 2);
        },
      ),
    );
  });
});

test('what holds no key stays as it is, byte for byte and in any pieces', async () => {
  const bytes = fc.oneof(
    fc.array(word).map((words) => Buffer.from(words.join(''))),
    fc.uint8Array({ maxLength: 400 }).map((array) => Buffer.from(array)),
  );
  await fc.assert(
    fc.asyncProperty(bytes, sizes, async (whole, lengths) => {
      const redactor = new Redactor([key, 'another-secret-of-ours']);
      expect(Buffer.from(redactor.whole(whole)).equals(whole)).toBe(true);
      const pieces = cut(whole, lengths);
      const stream = redactor.stream();
      const passed = Buffer.concat([...pieces.map((piece) => stream.push(piece)), stream.end()]);
      expect(passed.equals(whole)).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});

test('a stream holds nothing back that could not be the beginning of a key', () => {
  const stream = new Redactor([key]).stream();
  expect(stream.push(Buffer.from('data: {"text":"ask the sky"}\n\n')).toString()).toMatch(/\n\n$/);
  expect(stream.push(Buffer.from('x\\u0073')).toString()).toBe('x');
  expect(stream.push(Buffer.from('o')).toString()).toBe('\\u0073o');
});

test('an endless run of escapes costs no memory and little time', () => {
  const stream = new Redactor([key]).stream();
  let passed = 0;
  for (const piece of ['\\'.repeat(1 << 20), '%25'.repeat(1 << 18), '\\u0073'.repeat(1 << 17)])
    passed += stream.push(Buffer.from(piece)).length;
  expect(passed).toBeGreaterThan((1 << 20) + 3 * (1 << 18) + 6 * (1 << 17) - 200);
});

describe('JSON is written without a key', () => {
  test('and stays JSON, whatever stands around it', () => {
    const redactor = new Redactor(['npm_0123456789Q']);
    const value = { a: ['\\u006epm_0123456789Q', 'C:\\npm_0123456789Q\\'], npm_0123456789Q: 1, b: '\npm_' };
    expect(JSON.parse(redactor.json(value))).toEqual({
      a: ['[redacted]', 'C:\\[redacted]\\'],
      '[redacted]': 1,
      b: '\npm_',
    });
  });

  test('as JSON.stringify writes it where there is none', () => {
    const redactor = new Redactor([key]);
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(redactor.json(value)).toBe(JSON.stringify(value));
      }),
    );
    expect(redactor.json({ at: new Date(0), left: undefined })).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
  });
});
