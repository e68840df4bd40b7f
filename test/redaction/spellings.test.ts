import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { redactionOf } from '../../src/gateway/upstream-failure.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { runs } from '../short-tests.ts';

const key = 'sk-ant-api03-Zq7/aB3+dE9&fG=hJ_kL1mN5pQ%rStU';
const mark = '[redacted]';

const json = (text: string) => JSON.stringify(text).slice(1, -1);

function streamed(redactor: Pick<Redactor, 'stream'>, bytes: Buffer, size: number): Buffer {
  const stream = redactor.stream();
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) parts.push(stream.push(bytes.subarray(at, at + size)));
  return Buffer.concat([...parts, stream.end()]);
}

describe('a key is taken out', () => {
  test.each<[string, string | Buffer]>([
    ['in JSON', json(key)],
    ['in JSON in JSON', json(json(key))],
    ['in JSON with escaped slashes', json(key).replaceAll('/', '\\/')],
    ['in a URL', encodeURIComponent(key)],
    ['in a URL with lower-case escapes', encodeURIComponent(key).replace(/%../g, (one) => one.toLowerCase())],
    ['in a URL in a URL', encodeURIComponent(encodeURIComponent(key))],
    ['in a path', encodeURIComponent(key).replaceAll('%2F', '/')],
    ['in a form', new URLSearchParams([['k', key]]).toString().slice(2)],
    ['in HTML', key.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll("'", '&#39;')],
    ['in UTF-16, little-endian', Buffer.from(key, 'utf16le')],
    ['in UTF-16, big-endian', Buffer.from(key, 'utf16le').swap16()],
    ['in hexadecimal', Buffer.from(key).toString('hex')],
    ['in hexadecimal, upper case', Buffer.from(key).toString('hex').toUpperCase()],
    ...['', 'a', 'ab', 'abc'].flatMap((before): [string, string][] => [
      [`in base64 after '${before}'`, Buffer.from(`${before}${key}`).toString('base64')],
      [`in base64url after '${before}'`, Buffer.from(`${before}${key}`).toString('base64url')],
      [
        `in base64 in a URL, after '${before}'`,
        encodeURIComponent(Buffer.from(`${before}${key}`).toString('base64')),
      ],
    ]),
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
      fc.string({ maxLength: 20 }).map((text) => text.replace(/./g, (one) => `&#${one.charCodeAt(0)};`)),
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
      { numRuns: runs(300) },
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
