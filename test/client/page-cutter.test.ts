import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NotJson, PageCutter, type PieceKind } from '../../src/client/pages/page-cutter.ts';
import { runs } from '../short-tests.ts';

/** What a page is cut into. Throws where it is not JSON. */
function pieces(chunks: Iterable<Uint8Array>) {
  const found: [PieceKind, unknown][] = [];
  const cutter = new PageCutter((kind, json) => found.push([kind, JSON.parse(String(json))]));
  for (const chunk of chunks) cutter.write(chunk);
  cutter.finish();
  return found;
}

/** The same, from the whole document. */
function expected(json: string): [PieceKind, unknown][] {
  const page = JSON.parse(json);
  const found: [PieceKind, unknown][] = [];
  for (const run of entries(page, 'runs')) {
    for (const trial of entries(run, 'trials')) found.push(['trial', trial]);
    found.push(['run', without(run, 'trials')]);
  }
  return [...found, ['page', without(page, 'runs')]];
}

function entries(of: unknown, name: string): unknown[] {
  const list = isObject(of) && Object.hasOwn(of, name) ? of[name] : undefined;
  return Array.isArray(list) ? list : [];
}

function without(of: unknown, name: string): unknown {
  return isObject(of) && Array.isArray(of[name]) ? { ...of, [name]: [] } : of;
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
const text = fc
  .array(fc.constantFrom('a', '\\"', '\\\\', '{', '}', '[', ']', ',', ':', '€', '😀', '\\u0022', '\\ud83d'))
  .map((characters) => `"${characters.join('')}"`);
const name = fc.constantFrom('"a"', '"runs"', '"\\u0072uns"', '"trials"', '"tri\\u0061ls"', '"__proto__"');
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.oneof(text, fc.constantFrom('0', '-1.50e+3', 'true', 'null')),
    fc
      .tuple(space, fc.array(tie('value'), { maxLength: 4 }))
      .map(([gap, values]) => `[${gap}${values.join(`${gap},${gap}`)}${gap}]`),
    object(tie('value')),
  ),
}));

/** An object in which no name is twice. */
function object(of: fc.Arbitrary<string>, ...first: fc.Arbitrary<string>[]): fc.Arbitrary<string> {
  const members = fc.uniqueArray(fc.tuple(name, of), {
    maxLength: 4,
    selector: ([written]) => JSON.parse(written),
  });
  return fc.tuple(space, members, ...first).map(([gap, all, ...lists]) => {
    const kept = lists.length === 0 ? all : all.filter(([written]) => written === '"a"');
    const written = [...kept.map((member) => member.join(`${gap}:${gap}`)), ...lists];
    return `{${gap}${written.join(`${gap},${gap}`)}${gap}}`;
  });
}

const list = (of: fc.Arbitrary<string>, called: string) =>
  fc.array(of, { maxLength: 4 }).map((all) => `"${called}" : [ ${all.join(' , ')} ]`);
const run = fc.oneof(value, object(value, list(value, 'trials')));
const page = fc.oneof(value, object(value, list(run, 'runs')));
const places = fc.array(fc.nat(), { maxLength: 12 });

test('any page, in any chunks, is cut into the trials, runs and rest of the parsed page', () => {
  fc.assert(
    fc.property(page, places, (json, at) => {
      expect(pieces(cut(Buffer.from(json), at))).toEqual(expected(json));
    }),
    { numRuns: runs(3_000) },
  );
});

test('byte for byte it is the same', () => {
  fc.assert(
    fc.property(page, (json) => {
      const chunks = [...Buffer.from(json)].map((byte) => Uint8Array.of(byte));
      expect(pieces(chunks)).toEqual(expected(json));
    }),
    { numRuns: runs(300) },
  );
});

test('what the parser refuses is refused, wherever in the page it is', () => {
  const damage = fc.record({
    at: fc.nat(),
    remove: fc.nat(2),
    text: fc.constantFrom('', ...'{}[]",:\\0-.etn \u0000'.split('')),
  });
  let refused = 0;
  fc.assert(
    fc.property(page, damage, places, (whole, { at, remove, text }, cuts) => {
      const from = at % (whole.length + 1);
      const damaged = whole.slice(0, from) + text + whole.slice(from + remove);
      const isRefused = (of: () => unknown) => {
        try {
          of();
          return false;
        } catch {
          return true;
        }
      };
      if (!isRefused(() => JSON.parse(damaged))) return;
      refused += 1;
      expect(isRefused(() => pieces(cut(Buffer.from(damaged), cuts)))).toBe(true);
    }),
    { numRuns: runs(5_000) },
  );
  expect(refused).toBeGreaterThan(500);
});

test('a web page and a compressed answer are refused at their first byte', () => {
  for (const bytes of [Buffer.from('\n<'), Buffer.of(0x1f, 0x8b)])
    expect(() => new PageCutter(() => undefined).write(bytes)).toThrow(NotJson);
});
