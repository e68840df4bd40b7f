import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { blocksOf } from '../docs/blocks.ts';

const blocks = blocksOf('docs/tests.md')
  .filter(({ language }) => language === 'yaml')
  .flatMap(({ content }) => {
    const shown = parse(content);
    return [shown, ...(shown.cases ?? [])];
  });

test('the words of tests and of steps are all in docs/tests.md', () => {
  const shown = new Set(
    blocks.flatMap(({ tests = {}, steps = [] }) => [tests, ...steps].flatMap(Object.keys)),
  );
  for (const word of ['in', 'environment', 'brings', 'sealed', 'patch', 'restored', 'named'])
    expect(shown).toContain(word);
  for (const word of [
    'instruction',
    'empties',
    'folders',
    'setup',
    'healthcheck',
    'agent',
    'timeout',
    'tests',
    'solution',
  ])
    expect(shown).toContain(word);
});
