import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { SuiteFile } from '../../src/suite/suite-file.ts';

const document = readFileSync(new URL('../../docs/suites.md', import.meta.url), 'utf8');
const blocks = [...document.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text = '']) => parse(text));

const smallest = { suite: { id: 's', prompt: '{{instruction}}' }, variants: [{ model: 'm', harness: 'h' }] };

test('every example of docs/suites.md is one that Offsite reads', () => {
  expect(blocks.length).toBeGreaterThanOrEqual(11);
  for (const block of blocks) {
    if (block.profiles) ConfigFile.parse(block);
    else if (block.suite) SuiteFile.parse(block);
    // A part of a case.
    else SuiteFile.parse({ ...smallest, cases: [{ id: 'a', ...block }] });
  }
});

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
