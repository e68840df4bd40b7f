import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sourceOfVariant } from '../../src/api/plan-suite.ts';
import { offsiteHere } from './offsite.ts';
import { openPlace } from './place.ts';

describe('bad input ends the command with exit code 2 before anything is started:', () => {
  test('a suite file, with every problem at its place', async () => {
    using place = openPlace();
    place.write('offsite.yaml', 'profiles: { worker: { run: ls } }\n');
    const suite = place.write(
      'suite.yaml',
      `suite: { id: s, prompt: "Do {{what}}." }
trials: 2
variants:
  - { model: none, harness: command, profile: nobody }
cases:
  - id: first
    verify: echo {{what}}
    validator: { file: gone.ts }
  - id: first
`,
    );
    const { exitCode, stdout, stderr } = await offsiteHere(place, ['run', suite]);
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    const lines = stderr.trim().split('\n');
    expect(lines.map((line) => line.replace(`${suite}:`, '').split(': ').slice(0, 2))).toEqual([
      // Once for both cases, which have the same id.
      ['1:17', 'suite.prompt'],
      ['4:38', 'variants[0].profile'],
      ['7:5', 'cases[0].verify'],
      ['8:5', 'cases[0].validator'],
      ['9:5', 'cases[1]'],
      ['9:5', 'cases[1].id'],
    ]);
    expect(existsSync(place.dataFolder)).toBe(false);
  });

  test.each([
    [
      'an option as a value',
      ['run', 'suite.yaml', '--data-folder', '--json'],
      'word 4 after offsite, "--json"',
    ],
    [
      'an option as one of several',
      ['check', 'suite.yaml', '--exclude', 'a', '--include', '-h'],
      'where --include',
    ],
  ])('%s', async (_, args, message) => {
    using place = openPlace();
    const { exitCode, stdout, stderr } = await offsiteHere(place, args);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(existsSync(join(place.dataFolder, 'service.db'))).toBe(false);
  });
});

test.each([
  ['codex:sonnet', 'codex', 'sonnet'],
  ['sonnet/codex', 'codex', 'sonnet'],
  ['codex:qwen/qwen3', 'codex', 'qwen/qwen3'],
  ['qwen/qwen3:8b/codex', 'codex', 'qwen/qwen3:8b'],
  ['codex:house/bash', 'codex', 'house/bash'],
  ['nobody:none', 'nobody', 'none'],
])('the variant %s of tasks is %s with the model %s', (name, harness, model) => {
  const harnesses = [{ name: 'codex' }, { name: 'bash' }];
  const source = sourceOfVariant(name, { profile: undefined, sandbox: 'local' }, harnesses);
  expect(source).toEqual({ harness, model, sandbox: 'local' });
});
