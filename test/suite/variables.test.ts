import { describe, expect, test } from 'vitest';
import { expandedTexts } from '../../src/bounds/suite.ts';
import { expandVariables, isReservedName, variablesAsEnvironment } from '../../src/suite/variables.ts';

describe('expandVariables', () => {
  test('puts values in the places of their names, spaces inside the braces allowed', () => {
    expect(expandVariables('{{a}}-{{ b }}', { a: 'x', b: 'y' }, 'keep')).toBe('x-y');
  });

  test('writes values that are not strings as JSON', () => {
    expect(expandVariables('{{n}} {{l}}', { n: 3, l: ['a'] }, 'keep')).toBe('3 ["a"]');
  });

  test('leaves \\{{name}} as plain braces', () => {
    expect(expandVariables('\\{{a}} {{a}}', { a: 'x' }, 'keep')).toBe('{{a}} x');
  });

  test('does not expand what a value contains', () => {
    expect(expandVariables('{{a}}', { a: '{{b}}', b: 'no' }, 'keep')).toBe('{{b}}');
  });

  test('hands an unknown name over with its offset, and keeps it otherwise', () => {
    const seen: unknown[] = [];
    expandVariables('ab {{missing}}', {}, (name, offset) => seen.push([name, offset]));
    expect(seen).toEqual([['missing', 3]]);
    expect(expandVariables('{{missing}}', {}, 'keep')).toBe('{{missing}}');
  });

  test('takes names of inherited properties as unknown', () => {
    expect(expandVariables('{{constructor}} {{toString}}', {}, 'keep')).toBe('{{constructor}} {{toString}}');
  });
});

test('only names that can be environment variables become some', () => {
  expect(
    variablesAsEnvironment({ task: 't', 'a-b': 'x', count: 2, PATH: '/evil', OFFSITE_PROMPT: 'x' }),
  ).toEqual({
    task: 't',
    count: '2',
  });
  expect(isReservedName('LD_PRELOAD')).toBe(true);
});

describe('a text that would be too long with its variables', () => {
  test('is refused with its place, before it is built', () => {
    const text = `line\n${'{{v0}}'.repeat(4_000)}`;
    expect(() => expandVariables(text, { v0: 'x'.repeat(2 ** 20) }, 'keep')).toThrow(
      expect.objectContaining({
        code: 'EXPANDED_TEXT_TOO_LONG',
        kind: 'input',
        message: expect.stringContaining('{{v0}} in line 2'),
      }),
    );
  });

  test('counts what is not a string as JSON, and each of many variables', () => {
    const half = ['x'.repeat(expandedTexts.bytes.text / 2)];
    expect(() => expandVariables('{{a}}{{b}}', { a: half, b: half }, 'keep')).toThrow('{{b}} in line 1');
  });

  test('may have as many characters as the limit', () => {
    const value = 'x'.repeat(expandedTexts.bytes.text - 3);
    expect(expandVariables('{{v}}abc', { v: value }, 'keep')).toHaveLength(expandedTexts.bytes.text);
    expect(() => expandVariables('{{v}}abcd', { v: value }, 'keep')).toThrow('characters');
    expect(expandVariables('{{v}}abc{{e}}{{ e }}', { v: value, e: '' }, 'keep')).toHaveLength(
      expandedTexts.bytes.text,
    );
  });
});
