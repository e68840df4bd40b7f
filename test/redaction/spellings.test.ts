import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { redactionOf } from '../../src/gateway/redaction.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { runs } from '../short-tests.ts';

const key = 'sk-ant-api03-Zq7/aB3+dE9&fG=hJ_kL1mN5pQ%rStU';
const mark = '[redacted]';

const code = (character: string) => character.charCodeAt(0);
const hex = (character: string, digits = 2) => code(character).toString(16).padStart(digits, '0');
const each = (write: (character: string) => string) => [...key].map(write).join('');
const bytesOf = (separator: string, before = '') =>
  [...key].map((one) => `${before}${hex(one)}`).join(separator);
const named: Record<string, string> = {
  '/': '&sol;',
  '+': '&plus;',
  '&': '&amp;',
  '=': '&equals;',
  '%': '&percnt;',
  _: '&lowbar;',
};

function bigEndian(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16();
}

function streamed(redactor: Pick<Redactor, 'stream'>, bytes: Buffer, size: number): Buffer {
  const stream = redactor.stream();
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) parts.push(stream.push(bytes.subarray(at, at + size)));
  return Buffer.concat([...parts, stream.end()]);
}

describe('a key is taken out', () => {
  test.each<[string, string | Buffer]>([
    ['in UTF-16, little-endian', Buffer.from(key, 'utf16le')],
    ['in UTF-16, big-endian', bigEndian(key)],
    ['in UTF-32', Buffer.from(each((one) => `${one}\0\0\0`))],
    ['in UTF-16 that JSON holds as text', JSON.stringify(each((one) => `${one}\0`)).slice(1, -1)],
    ['in UTF-16, as hexadecimal', Buffer.from(key, 'utf16le').toString('hex')],
    ['in UTF-16, as base64', Buffer.from(`a${key}`, 'utf16le').toString('base64')],
    ['in base64, in UTF-16', Buffer.from(Buffer.from(key).toString('base64'), 'utf16le')],
    ['in decimal HTML entities', each((one) => `&#${code(one)};`)],
    ['in decimal HTML entities with zeros', each((one) => `&#000${code(one)};`)],
    ['in hexadecimal HTML entities', each((one) => `&#x${hex(one)};`)],
    ['in HTML entities without their ends', each((one) => (/\W/.test(one) ? `&#${code(one)}` : one))],
    ['in named HTML entities', each((one) => named[one] ?? one)],
    ['in HTML entities, some characters only', each((one) => (/[A-Z]/.test(one) ? `&#${code(one)};` : one))],
    ['in HTML entities of HTML entities', each((one) => `&amp;#x26;#${code(one)};`)],
    ['in HTML entities, percent-encoded', encodeURIComponent(each((one) => `&#${code(one)};`))],
    ['in \\x escapes', each((one) => `\\x${hex(one)}`)],
    ['in \\x escapes, in JSON', each((one) => `\\\\x${hex(one).toUpperCase()}`)],
    ['in \\x escapes of its signs', each((one) => (/\W/.test(one) ? `\\x${hex(one)}` : one))],
    ['in octal escapes', each((one) => `\\${code(one).toString(8)}`)],
    ['in octal escapes of three digits', each((one) => `\\${code(one).toString(8).padStart(3, '0')}`)],
    ['in \\u{} escapes', each((one) => `\\u{${hex(one)}}`)],
    ['in \\U escapes', each((one) => `\\U${hex(one, 8)}`)],
    ['in CSS escapes', each((one) => `\\${hex(one)} `)],
    ['in %u escapes', each((one) => `%u${hex(one, 4)}`)],
    ['in hexadecimal with blanks', bytesOf(' ')],
    ['in hexadecimal with colons', bytesOf(':').toUpperCase()],
    ['in hexadecimal with dashes', bytesOf('-')],
    ['in hexadecimal with commas', bytesOf(',')],
    ['in hexadecimal as programs write it', bytesOf(', ', '0x')],
    ['in hexadecimal in lines', bytesOf(',\n  ', '0x')],
    ['in hexadecimal in lines, in JSON', bytesOf(',\\n  ', '0x')],
    ['in hexadecimal in texts', JSON.stringify([...key].map((one) => hex(one))).slice(2, -2)],
    ['in hexadecimal after equals signs', bytesOf('', '=')],
    ['as a list of numbers', JSON.stringify([...Buffer.from(key)]).slice(1, -1)],
    ['as a list of numbers in lines', [...Buffer.from(key)].join(',\n')],
  ])('%s', (_, written) => {
    const whole = Buffer.concat([Buffer.from('before '), Buffer.from(written), Buffer.from(' after')]);
    const redactor = new Redactor([key]);
    const left = Buffer.from(redactor.whole(whole));
    expect(left.toString('latin1')).toMatch(/^before .{0,4}\[redacted\].{0,9} after$/s);
    for (const size of [1, 2, 7, 64]) {
      expect(streamed(redactor, whole, size).equals(left)).toBe(true);
      expect(streamed(redactionOf(key), whole, size).equals(left)).toBe(true);
    }
  });

  test('if it has what reads as an escaped zero, after a zero', () => {
    for (const hidden of ['secret%00withAZero', 'secret&#0;withAZero', 'secret\\x00withAZero']) {
      const written = hidden.replace('secret', 'secret\0');
      expect(String(new Redactor([hidden]).whole(Buffer.from(written)))).toBe('[redacted]');
    }
  });

  test('in any mixture of these', () => {
    const writings: ((character: string) => string)[] = [
      (one) => one,
      (one) => `${one}\0`,
      (one) => `&#${code(one)};`,
      (one) => `&#x${hex(one).toUpperCase()};`,
      (one) => `&amp;#${code(one)};`,
      (one) => `\\x${hex(one)}`,
      (one) => `\\${code(one).toString(8).padStart(3, '0')}`,
      (one) => `\\u{${hex(one)}}`,
      (one) => `\\\\u${hex(one, 4)}`,
      (one) => `%${hex(one)}`,
      (one) => `%26%23${code(one)}%3B`,
      (one) => named[one] ?? one,
    ];
    const secret = fc
      .array(fc.constantFrom(...'abcXYZ019-_./+%"~=:!&;#x'), { minLength: 12, maxLength: 60 })
      .map((letters) => `${letters.join('')}Q`);
    const ways = fc.array(fc.nat(writings.length - 1), { minLength: 61, maxLength: 61 });
    fc.assert(
      fc.property(secret, ways, fc.integer({ min: 1, max: 90 }), (hidden, chosen, size) => {
        const written = [...hidden].map((one, index) => writings[chosen[index] ?? 0]?.(one)).join('');
        const text = Buffer.from(`before ${written} after`);
        const redactor = new Redactor([hidden]);
        const left = redactor.whole(text);
        expect(Buffer.from(left).toString()).toMatch(/^before \[redacted\]\0? after$/);
        expect(streamed(redactor, text, size).equals(left)).toBe(true);
      }),
      { numRuns: runs(2_000) },
    );
  });
});

describe('the beginning of a key is taken out', () => {
  const half = key.slice(0, key.length / 2);

  test.each([
    ['without its last character', key.slice(0, -1)],
    ['without its last eight', key.slice(0, -8)],
    ['that is half of it', half],
    ['masked', `${key.slice(0, 24)}****`],
    ['with three dots', `${key.slice(0, 24)}…`],
    ['in hexadecimal', Buffer.from(half).toString('hex')],
    ['in base64', Buffer.from(`key: ${key.slice(0, 25)}`).toString('base64')],
    ['in base64 with a mask', Buffer.from(`${key.slice(0, 25)}****`).toString('base64')],
    ['in UTF-16', half.replace(/./g, '$&\0')],
    ['as numbers', [...Buffer.from(half)].join(',')],
  ])('%s', (_, written) => {
    const text = `before ${written} after`;
    const left = new Redactor([key]).text(text);
    expect(left).toMatch(/^before .{0,8}\[redacted\].{0,8} after$/s);
    for (const size of [1, 5, 31])
      expect(streamed(new Redactor([key]), Buffer.from(text), size).toString()).toBe(left);
    expect(new Redactor([key]).text(written)).toContain(mark);
  });

  test('a short key: from twelve characters on', () => {
    const redactor = new Redactor(['Zq7aB3dE9fGhJkL1']);
    expect(redactor.text('Zq7aB3dE9fGh****')).toBe(`${mark}****`);
    expect(redactor.text('Zq7aB3dE9fG*****')).toBe('Zq7aB3dE9fG*****');
  });

  test.each([
    ['sk-ant-api03-Zq7aB3dE9fGh', 'the key begins with sk-ant-api03-Zq7aB3d'],
    [key, `sk-ant-api03- and sk-ant-api03-${key.slice(13, 20)}`],
    ['sk-proj-Zq7aB3dE9fGhJkL1', 'sk-proj-Zq7aB3d'],
    ['github_pat_11ABCDEFG0Zq7aB3dE', 'github_pat_11ABCDE'],
    ['secret-of-the-upstream-model', 'secret-of-the-upstream-mod'],
  ])('but not what every such key begins with: %s', (hidden, text) => {
    expect(new Redactor([hidden]).text(text)).toBe(text);
  });
});

describe('what holds no key stays as it is', () => {
  const keys = [key, 'sk-proj-eT4sRkWqtR8yU2iOpAsD6fG0hJ', 'ghp_0123456789abcdefABCDEF0123456789abcd'];

  test('prose, programs, dumps, numbers and pages, byte for byte and wherever a stream is cut', () => {
    const piece = fc.oneof(
      fc.lorem(),
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.jsonValue().map((value) => JSON.stringify(JSON.stringify(value))),
      fc
        .uint8Array({ maxLength: 60 })
        .map((bytes) => Buffer.from(bytes).toString('hex').replace(/../g, '$& ')),
      fc.uint8Array({ maxLength: 60 }).map((bytes) => [...bytes].join(', ')),
      fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('base64')),
      fc.string({ maxLength: 20 }).map((text) => text.replace(/./g, (one) => `&#${code(one)};`)),
      fc.constantFrom(
        'sk-ant-api03-',
        'sk-proj-',
        'ghp_',
        '\\x73\\x6b',
        '&#115;&#107;',
        '&amp;',
        '&',
        '&#',
        '\\1',
        '115, 107, 45',
      ),
    );
    fc.assert(
      fc.property(fc.array(piece), fc.integer({ min: 1, max: 50 }), (pieces, size) => {
        const whole = Buffer.from(pieces.join(' '));
        const redactor = new Redactor(keys);
        expect(Buffer.from(redactor.whole(whole)).equals(whole)).toBe(true);
        expect(streamed(redactor, whole, size).equals(whole)).toBe(true);
      }),
      { numRuns: runs(1_000) },
    );
  });

  test('and endless runs of escapes and gaps cost little time', () => {
    const stream = new Redactor(keys).stream();
    const runs = [
      '&amp;',
      '&#x26;',
      'amp;',
      '&#0',
      '\0',
      's\0',
      '73 ',
      '115,',
      '\\x73',
      '\\163',
      '%26',
      '&#',
      '%5C',
    ];
    for (const run of runs) {
      const bytes = Buffer.from(run.repeat((1 << 17) / run.length));
      expect(stream.push(bytes).length).toBeGreaterThan(bytes.length - 2_000);
    }
  });
});

test('a key is found in a name whatever its case', () => {
  const redaction = redactionOf(key);
  expect(redaction.isIn(`x-${key.toLowerCase()}`)).toBe(true);
  expect(redaction.isIn(`x-${Buffer.from(key).toString('base64url').toLowerCase()}`)).toBe(true);
  expect(redaction.isIn('x-request-id')).toBe(false);
  expect(redactionOf(undefined).isIn('x-request-id')).toBe(false);
});
