import type { TrialRow } from './shapes.ts';

type Test = (trial: TrialRow) => boolean;

export interface Filter {
  matches: Test;
  /** The parts of the filter that are not understood and not applied, for people. */
  problems: string[];
}

/**
 * Reads a filter: words separated by spaces, all of which must match. `verdict:failed,void` asks for one of
 * several values. `-case:name` excludes. `duration:>90s`, `cost:<=0.05` and `tokens:>10k` compare numbers.
 * Any other word is searched for in case, variant and reason. Quotes keep spaces: `case:"two words"`.
 */
export function parseFilter(text: string): Filter {
  const problems: string[] = [];
  const tests: Test[] = [];
  for (const { negated, field, value } of words(text)) {
    const test = field === undefined ? textTest(value) : fields[field](value);
    if (typeof test === 'string') problems.push(test);
    else tests.push(negated ? (trial) => !test(trial) : test);
  }
  return { matches: (trial) => tests.every((test) => test(trial)), problems };
}

interface Word {
  negated: boolean;
  field: Field | undefined;
  value: string;
}

function words(text: string): Word[] {
  const found = text.matchAll(
    /(?<minus>-?)(?:(?<field>[a-z]+):)?(?:"(?<quoted>[^"]*)"?|(?<plain>[^\s"]\S*))/g,
  );
  return [...found].map(({ groups = {} }) => {
    const { minus, field, quoted, plain } = groups;
    const value = quoted ?? plain ?? '';
    const isKnown = field !== undefined && Object.hasOwn(fields, field);
    const whole = field === undefined || isKnown ? value : `${field}:${value}`;
    return { negated: minus === '-', field: isKnown ? (field as Field) : undefined, value: whole };
  });
}

function textTest(value: string): Test {
  const wanted = value.toLowerCase();
  const has = (text: string | undefined) => text?.toLowerCase().includes(wanted) === true;
  return ({ caseName, caseId, variant, reason, cause }) =>
    has(caseName) || has(caseId) || has(variant) || has(reason) || has(cause?.message);
}

const oneOf =
  (valuesOf: (trial: TrialRow) => string[]) =>
  (value: string): Test => {
    const wanted = value.toLowerCase().split(',');
    return (trial) => valuesOf(trial).some((each) => wanted.includes(each));
  };

const partOf =
  (valuesOf: (trial: TrialRow) => string[]) =>
  (value: string): Test => {
    const wanted = value.toLowerCase();
    return (trial) => valuesOf(trial).some((each) => each.toLowerCase().includes(wanted));
  };

const durationUnits = { '': 1000, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const tokenUnits = { '': 1, k: 1000, m: 1_000_000 };

/** Fields that a filter can ask for by name, with the tests for a value, or what is wrong with it. */
const fields = {
  verdict: oneOf(({ verdict, state }) => [verdict ?? state]),
  state: oneOf(({ state }) => [state]),
  cause: oneOf(({ cause }) => (cause ? [cause.kind, cause.phase] : [])),
  case: partOf(({ caseName, caseId }) => [caseName, caseId]),
  variant: partOf(({ variant }) => [variant]),
  duration: (value: string) => compared('duration', value, durationUnits, ({ durationMs }) => durationMs),
  cost: (value: string) => compared('cost', value, { '': 1, $: 1 }, ({ costUsd }) => costUsd),
  tokens: (value: string) => compared('tokens', value, tokenUnits, ({ tokens }) => tokens),
} satisfies Record<string, (value: string) => Test | string>;
type Field = keyof typeof fields;

function compared(
  field: string,
  value: string,
  units: Record<string, number>,
  numberOf: (trial: TrialRow) => number | undefined,
): Test | string {
  const [, sign = '=', digits, unit = ''] = /^([<>]=?|=)?\$?(\d+(?:\.\d+)?)([a-z]*)$/i.exec(value) ?? [];
  const factor = units[unit.toLowerCase()];
  if (digits === undefined || factor === undefined)
    return `${field}: expected a number such as >10, not ${value}`;
  const limit = Number(digits) * factor;
  return (trial) => {
    const number = numberOf(trial);
    if (number === undefined) return false;
    if (sign === '>') return number > limit;
    if (sign === '>=') return number >= limit;
    if (sign === '<') return number < limit;
    if (sign === '<=') return number <= limit;
    return number === limit;
  };
}

/** The filter with a field set to a value, or without the field if the value is undefined. */
export function withField(text: string, field: Field, value: string | undefined): string {
  const rest = text
    .replace(new RegExp(`(^|\\s)-?${field}:(?:"[^"]*"?|\\S*)`, 'g'), ' ')
    .replace(/\s+/g, ' ')
    .trim();
  if (value === undefined) return rest;
  const written = /[\s"]/.test(value) ? `"${value.replaceAll('"', '')}"` : value;
  return `${rest} ${field}:${written}`.trim();
}

/** The value of a field in a filter; undefined if the filter does not ask for it. */
export function fieldOf(text: string, field: Field): string | undefined {
  return words(text).find((word) => word.field === field && !word.negated)?.value;
}

/** Whether a text has all words of a filter, which has nothing but words. */
export function wordTest(filter: string): (text: string) => boolean {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return (text) => words.every((word) => text.toLowerCase().includes(word));
}
