import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { blocksOf } from '../docs/blocks.ts';

const blocks = blocksOf('docs/suites.md')
  .filter(({ language }) => language === 'yaml')
  .map(({ content }) => parse(content));

test('the words of tests and of steps are all in docs/suites.md', () => {
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
