import type { GridTrial } from './grid.ts';

/** Fields that a filter can ask for by name. */
export const filterFields = [
  'verdict',
  'cause',
  'case',
  'variant',
  'state',
  'duration',
  'cost',
  'tokens',
] as const;
type Field = (typeof filterFields)[number];

type Test = (trial: GridTrial) => boolean;

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
    const test = field === undefined ? textTest(value) : fieldTest(field, value);
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
    const known = filterFields.find((name) => name === field);
    const whole = field === undefined || known ? value : `${field}:${value}`;
    return { negated: minus === '-', field: known, value: whole };
  });
}

function textTest(value: string): Test {
  const wanted = value.toLowerCase();
  const has = (text: string | undefined) => text?.toLowerCase().includes(wanted) === true;
  return ({ caseName, caseId, variant, summary, cause }) =>
    has(caseName) || has(caseId) || has(variant) || has(summary?.reason) || has(cause?.message);
}

function fieldTest(field: Field, value: string): Test | string {
  switch (field) {
    case 'verdict':
      return oneOf(value, ({ verdict, state }) => [verdict ?? state]);
    case 'state':
      return oneOf(value, ({ state }) => [state]);
    case 'cause':
      return oneOf(value, ({ cause }) => (cause ? [cause.kind, cause.phase] : []));
    case 'case':
      return partOf(value, ({ caseName, caseId }) => [caseName, caseId]);
    case 'variant':
      return partOf(value, ({ variant }) => [variant]);
    case 'duration':
      return compared(field, value, durationUnits, ({ durationMs }) => durationMs);
    case 'cost':
      return compared(field, value, { '': 1, $: 1 }, ({ summary }) => summary?.costUsd);
    case 'tokens':
      return compared(field, value, tokenUnits, ({ summary }) => summary?.totalTokens);
  }
}

function oneOf(value: string, valuesOf: (trial: GridTrial) => string[]): Test {
  const wanted = value.toLowerCase().split(',');
  return (trial) => valuesOf(trial).some((each) => wanted.includes(each));
}

function partOf(value: string, valuesOf: (trial: GridTrial) => string[]): Test {
  const wanted = value.toLowerCase();
  return (trial) => valuesOf(trial).some((each) => each.toLowerCase().includes(wanted));
}

const durationUnits = { '': 1000, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const tokenUnits = { '': 1, k: 1000, m: 1_000_000 };

function compared(
  field: string,
  value: string,
  units: Record<string, number>,
  numberOf: (trial: GridTrial) => number | undefined,
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
