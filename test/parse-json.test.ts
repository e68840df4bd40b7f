import { expect, test } from 'vitest';
import { DocumentTooDeep, isDeeper, parseForeignJson } from '../src/base/parse-json.ts';

const nested = {
  lists: (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`,
  objects: (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`,
  both: (levels: number) =>
    `${'[{"a":'.repeat(levels / 2)}${levels % 2 ? '[]' : 1}${'}]'.repeat(levels / 2)}`,
};

test.each(['lists', 'objects', 'both'] as const)('%s may be nested 256 levels deep, and no more', (kind) => {
  for (const levels of [1, 255, 256]) {
    expect(isDeeper(parseForeignJson(nested[kind](levels)), levels - 1)).toBe(true);
    expect(isDeeper(parseForeignJson(nested[kind](levels)), levels)).toBe(false);
  }
  for (const levels of [257, 100_000])
    expect(() => parseForeignJson(nested[kind](levels))).toThrow(DocumentTooDeep);
});

test('brackets within texts, one after another or without an end are no levels', () => {
  const text = '[{'.repeat(1_000);
  expect(parseForeignJson(JSON.stringify([text, `\\"${text}`]))).toEqual([text, `\\"${text}`]);
  expect(parseForeignJson(`[${'[],{},'.repeat(1_000)}0]`)).toHaveLength(2_001);
  expect(() => parseForeignJson('['.repeat(100_000))).toThrow(SyntaxError);
  expect(() => parseForeignJson('{'.repeat(100_000))).toThrow(SyntaxError);
});

test('a value is measured however deep it is', () => {
  const deep: unknown = JSON.parse(nested.lists(100_000));
  expect([isDeeper(deep, 99_999), isDeeper(deep, 100_000)]).toEqual([true, false]);
  expect([1, 'a', null, undefined].map((value) => isDeeper(value, 0))).toEqual([false, false, false, false]);
});
