import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonFilter, type Kept } from '../../src/client/pages/json-filter.ts';
import { NotJson } from '../../src/client/pages/json-scanner.ts';
import { Utf8Check } from '../../src/client/pages/utf8-check.ts';
import { runs } from '../short-tests.ts';

const room = { bytes: 1024 * 1024, values: 10_000 };
const entry: Kept = {
  fields: new Map<string, Kept>([
    ['a', 'scalar'],
    ['b', 'whole'],
    ['list', { entries: { fields: new Map<string, Kept>([['a', 'scalar']]) } }],
  ]),
};
const document: Kept = {
  fields: new Map<string, Kept>([
    ['a', 'scalar'],
    ['b', 'whole'],
    ['list', { entries: entry }],
    ['runs', { each: entry }],
  ]),
};

interface Filtered {
  document: unknown;
  entries: unknown[];
}

/** What is kept of a document that arrives in these chunks. Throws where the document is no JSON. */
function filtered(chunks: Iterable<Uint8Array>, kept = document): Filtered {
  let entries: unknown[] = [];
  const filter = new JsonFilter(kept, room, {
    list: () => {
      entries = [];
    },
    entry: (kept) => entries.push(kept && JSON.parse(kept.json.toString())),
  });
  const utf8 = new Utf8Check();
  for (const chunk of chunks) {
    if (!utf8.accepts(chunk)) throw new NotJson('not UTF-8');
    filter.write(chunk);
  }
  return { document: JSON.parse(filter.finish()?.json.toString() ?? '"no room"'), entries };
}

/** The same, from the whole document. */
function expected(bytes: Uint8Array): Filtered {
  const whole = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  const { runs } = isObject(whole) ? whole : {};
  return {
    document: kept(whole, document),
    entries: Array.isArray(runs) ? runs.map((run) => kept(run, entry)) : [],
  };
}

function kept(value: unknown, how: Kept): unknown {
  if (how === 'whole' || typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    return typeof how === 'object' && 'entries' in how ? value.map((each) => kept(each, how.entries)) : [];
  }
  const fields = typeof how === 'object' && 'fields' in how ? [...how.fields] : [];
  return Object.fromEntries(
    fields
      .filter(([name]) => Object.hasOwn(value, name))
      .map(([name, field]) => [name, kept((value as Record<string, unknown>)[name], field)]),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The bytes in chunks that are cut at these places. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

const space = fc.constantFrom('', '', ' ', '\n\t\r ');
const character = fc.constantFrom(
  ...['a', '"', '\\', '\\"', '\\\\', '{', '}', '[', ']', ',', ':', 'é', '€', '😀', '\\n', '\\/', '\\u00e9'],
  ...['\\ud83d', '\\ude00', '\\u0022', '\u007f', '\u2028', '\\b'],
);
const text = fc
  .array(character.filter((each) => each !== '"' && each !== '\\'))
  .map((characters) => `"${characters.join('')}"`);
const number = fc.constantFrom(
  '0',
  '-0',
  '12',
  '-1.50',
  '1e3',
  '2E-7',
  '0.1e+20',
  '12345678901234567890',
  '1e999',
);
const name = fc.oneof(
  fc.constantFrom(
    '"a"',
    '"\\u0061"',
    '"b"',
    '"list"',
    '"l\\u0069st"',
    '"runs"',
    '"\\u0072uns"',
    '"__proto__"',
  ),
  // After V8 (13.6) has read a name with a backslash in it, it takes other names that are written with
  // escapes for that one: [{"x":1,"\\\\":1}, {"x":1,"\\u0061":1}] can become [{x, "\\"}, {x, "\\"}].
  text.filter((written) => !written.includes('\\\\')),
);
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.oneof(text, number, fc.constantFrom('true', 'false', 'null')),
    fc
      .tuple(space, fc.array(tie('value'), { maxLength: 4 }))
      .map(([gap, values]) => `[${gap}${values.join(`${gap},${gap}`)}${gap}]`),
    fc
      .tuple(space, fc.array(fc.tuple(name, tie('value')), { maxLength: 6 }))
      .map(
        ([gap, members]) =>
          `{${gap}${members.map((one) => one.join(`${gap}:${gap}`)).join(`${gap},`)}${gap}}`,
      ),
  ),
}));
const page = fc
  .tuple(fc.array(value, { maxLength: 4 }), value, value)
  .map(([runs, before, after]) => `{"b":${before},"runs":[${runs.join(',')}],"skipped":${after},"a":1}`);
const written = fc
  .tuple(fc.oneof(value, page), space, space)
  .map(([json, a, b]) => Buffer.from(a + json + b));
const places = fc.array(fc.nat(), { maxLength: 12 });

test('of any document, in any chunks, the same is kept as of the parsed document', () => {
  fc.assert(
    fc.property(written, places, (bytes, at) => {
      expect(filtered(cut(bytes, at))).toEqual(expected(bytes));
    }),
    { numRuns: runs(3_000) },
  );
});

test('byte for byte it is the same', () => {
  fc.assert(
    fc.property(written, (bytes) => {
      const chunks = [...bytes].map((byte) => Uint8Array.of(byte));
      expect(filtered(chunks)).toEqual(expected(bytes));
    }),
    { numRuns: runs(300) },
  );
});

test('what the parser refuses is refused, in whatever part and in whatever chunks, and nothing else is', () => {
  const damage = fc.record({
    at: fc.nat(),
    remove: fc.nat(2),
    bytes: fc.oneof(
      fc.uint8Array({ maxLength: 2 }),
      fc.constantFrom(...'{}[]",:\\u0-+.eEtfn \u0000\u001f'.split('').map((each) => Buffer.from(each))),
    ),
  });
  let refused = 0;
  fc.assert(
    fc.property(written, damage, places, (whole, { at, remove, bytes }, cuts) => {
      const from = at % (whole.length + 1);
      const damaged = Buffer.concat([whole.subarray(0, from), bytes, whole.subarray(from + remove)]);
      const attempt = (of: () => Filtered) => {
        try {
          return of();
        } catch {
          return 'refused';
        }
      };
      const outcome = attempt(() => filtered(cut(damaged, cuts)));
      if (outcome === 'refused') refused += 1;
      expect(outcome).toEqual(attempt(() => expected(damaged)));
    }),
    { numRuns: runs(5_000) },
  );
  expect(refused).toBeGreaterThan(1_000);
});

test('a byte order mark is read over at the beginning alone', () => {
  const mark = Buffer.from([0xef, 0xbb, 0xbf]);
  const json = Buffer.from('{"a":1}');
  for (const places of [[], [1], [2], [1, 2]])
    expect(filtered(cut(Buffer.concat([mark, json]), places)).document).toEqual({ a: 1 });
  for (const bytes of [
    [mark.subarray(0, 2), json],
    [Buffer.from(' '), mark, json],
    [mark, mark, json],
  ])
    expect(() => filtered(bytes)).toThrow(NotJson);
});

test('more levels than a document may have are refused, also where they are skipped', () => {
  const nested = (levels: number) => [
    Buffer.from(`{"x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`),
  ];
  expect(filtered(nested(256)).document).toEqual({});
  expect(() => filtered(nested(257))).toThrow(NotJson);
  expect(() => filtered([Buffer.from('['.repeat(1_000_000))])).toThrow(NotJson);
});

test('an entry with more bytes or values than there is room for is left out, and the next one is read', () => {
  const large = {
    bytes: JSON.stringify({ b: 'x'.repeat(room.bytes) }),
    values: `{"b":[${'0,'.repeat(room.values)}0]}`,
  };
  for (const json of Object.values(large)) {
    const bytes = Buffer.from(`{"runs":[{"a":1},${json},{"a":2}],"a":3}`);
    expect(filtered(cut(bytes, [20, 1000, 100_000]))).toEqual({
      document: { runs: [], a: 3 },
      entries: [{ a: 1 }, undefined, { a: 2 }],
    });
  }
  expect(filtered([Buffer.from(`{"a":${JSON.stringify('x'.repeat(room.bytes))}}`)]).document).toBe('no room');
});

test('a name that is longer than any that matters is none of them', () => {
  const long = `"${'\\u0061'.repeat(100_000)}"`;
  expect(filtered([Buffer.from(`{"a":1,${long}:{"a":2},"b":3}`)]).document).toEqual({ a: 1, b: 3 });
});

test('a character that is cut short is refused, also where a chunk ends within it', () => {
  const bytes = Buffer.from([0x22, 0xe0, 0x22]);
  for (const places of [[], [1], [2], [1, 2]]) expect(() => filtered(cut(bytes, places))).toThrow(NotJson);
});
