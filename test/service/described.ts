import fc from 'fast-check';

/**
 * A way to describe requests by hand, as the specification shows them, and not from the service's own
 * schemas. A description gives values that must be accepted, and ways to make one thing wrong in such a
 * value.
 */
export interface Described {
  values: fc.Arbitrary<unknown>;
  /** Every way to make one thing wrong in this value, which is one of `values`. */
  faults(value: unknown, path: Path): Fault[];
}

type Path = (string | number)[];

export interface Fault {
  path: Path;
  /** What stands there instead; `removed` if nothing does. */
  wrong: unknown;
}

const removed = Symbol('removed');

function scalar(values: fc.Arbitrary<unknown>, ...wrongs: unknown[]): Described {
  return { values, faults: (_, path) => wrongs.map((wrong) => ({ path, wrong })) };
}

const hostileTexts = [
  '',
  '\0',
  'a\0b',
  '\ud800',
  '\udfff\ud83d',
  '\u202e\u0007\u001b[2J',
  '__proto__',
  'constructor',
  '{{name}}',
  '\\{{name}}',
  '{{constructor}} {{__proto__}} {{toString}}',
  '{{'.repeat(600),
  '{{ '.repeat(600),
  '{{unknown}}'.repeat(600),
  '}}{{'.repeat(600),
  '$&$1$`',
  "'; DROP TABLE runs; --",
  'x'.repeat(5_000),
];
const texts = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(...hostileTexts),
);

export const text = scalar(texts, 7, null, ['x'], {});
/** Our service takes as an id any well-formed text of 1 to 200 characters without NUL. */
export const id = scalar(
  texts.filter((one) => one !== '' && one.length <= 200 && one.isWellFormed() && !one.includes('\0')),
  7,
  null,
  '',
  'a\0',
  '\ud800',
  'x'.repeat(201),
);
/** A tag, or the name of a suite or a case. That it has at most 200 characters is our choice. */
export const name = scalar(
  texts.filter((one) => one.length <= 200),
  'x'.repeat(201),
  7,
  null,
);

/** A text that is neither empty nor long. */
export const filled = scalar(
  texts.filter((one) => one !== '' && one.length <= 200),
  7,
  null,
  '',
);
export const flag = scalar(fc.boolean(), 'yes', 0, null);
const hugeNumbers = [0, Number.MAX_VALUE, -Number.MAX_VALUE, Number.MIN_VALUE, 2 ** 53, 1e21];
export const number = scalar(
  fc.oneof(
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(...hugeNumbers),
  ),
  '7',
  null,
  [1],
);
export const integer = scalar(fc.oneof(fc.maxSafeInteger(), fc.constantFrom(0, 1)), 1.5, '7', null);

/** A count, an index or a size. */
export const count = scalar(fc.oneof(fc.nat(), fc.constantFrom(0, 2 ** 40)), -1, 0.5, '7', null);

export function between(least: number, most: number): Described {
  return scalar(fc.integer({ min: least, max: most }), least - 1, most + 1, least + 0.5, '7', null);
}

export function only(value: string): Described {
  return scalar(fc.constant(value), 'something-else', 7, null);
}

/** One of the values that a field may have. Which others it may have is not shown, so no text is a fault. */
export function forExample(value: string): Described {
  return scalar(fc.constant(value), 7, null);
}

export const sha256 = scalar(fc.stringMatching(/^[0-9a-f]{64}$/), 'x', 7);

const deep = JSON.parse(`${'[{"a":'.repeat(60)}1${'}]'.repeat(60)}`);
const names = fc
  .oneof(texts, fc.constantFrom('name', 'constructor', 'toString'))
  .filter((one) => one !== '__proto__');
const json = fc.oneof(texts, number.values, fc.constant(deep), fc.jsonValue({ maxDepth: 3 }));

/** As it arrives: JSON has no -0. A field named `__proto__` is refused, which is a fault. */
const plainJson = json
  .map((value): unknown => JSON.parse(JSON.stringify(value)))
  .filter((value) => !JSON.stringify(value).includes('"__proto__":'));

/** A map with any content. */
export const freeForm: Described = {
  values: fc.dictionary(names, plainJson, { maxKeys: 4, noNullPrototype: true }),
  faults: (_, path) => [
    { path, wrong: [] },
    { path, wrong: 'x' },
    { path: [...path, '__proto__'], wrong: 1 },
  ],
};

export function list(item: Described, least = 0, most?: number): Described {
  return {
    values: fc.array(item.values, { minLength: least, maxLength: Math.min(most ?? 3, least + 3) }),
    faults: (value, path) => [
      { path, wrong: {} },
      { path, wrong: 'x' },
      ...(least > 0 ? [{ path, wrong: [] }] : []),
      ...(most === undefined ? [] : [{ path, wrong: Array(most + 1).fill((value as unknown[])[0]) }]),
      ...(value as unknown[]).flatMap((one, index) => item.faults(one, [...path, index])),
    ],
  };
}

export function object(fields: Record<string, Described>, optional: string[] = []): Described {
  const required = Object.keys(fields).filter((name) => !optional.includes(name));
  const values = Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.values]));
  return {
    values: fc.record(values, { requiredKeys: required as never[], noNullPrototype: true }),
    faults: (value, path) => [
      { path, wrong: [] },
      { path, wrong: 7 },
      { path: [...path, 'notShown'], wrong: 1 },
      { path: [...path, '__proto__'], wrong: 1 },
      ...Object.entries(value as object).flatMap(([name, inner]) => [
        ...(required.includes(name) ? [{ path: [...path, name], wrong: removed }] : []),
        ...(fields[name]?.faults(inner, [...path, name]) ?? []),
      ]),
    ],
  };
}

/** The JSON text of `body` with something wrong in it. */
export function withFault(body: unknown, { path, wrong }: Fault): string {
  return JSON.stringify(replaced(body, path, wrong));
}

function replaced(body: unknown, [key, ...rest]: Path, wrong: unknown): unknown {
  if (key === undefined) return wrong;
  if (Array.isArray(body)) return body.map((one, at) => (at === key ? replaced(one, rest, wrong) : one));
  const others = Object.entries(body as object).filter(([name]) => name !== key);
  if (rest.length === 0 && wrong === removed) return Object.fromEntries(others);
  const inner = (body as Record<string | number, unknown>)[key];
  // `fromEntries` makes a field of `__proto__` too.
  return Object.fromEntries([...others, [key, replaced(inner, rest, wrong)]]);
}
