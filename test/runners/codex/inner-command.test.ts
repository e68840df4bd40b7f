import fc from 'fast-check';
import { expect, test } from 'vitest';
import { innerCommand } from '../../../runners/codex/runner.ts';

const command = fc.string({ unit: 'grapheme', minLength: 1 });

test('is what was given to the shell, however it is quoted', () => {
  fc.assert(
    fc.property(command, (text) => {
      const single = text.replaceAll("'", "'\\''");
      expect(innerCommand(`/bin/bash -lc '${single}'`)).toBe(text);
      const double = text.replace(/[$`"\\]/g, '\\$&');
      expect(innerCommand(`/usr/bin/zsh -c "${double}"`)).toBe(text);
      const mixed = text.replaceAll("'", `'"'"'`);
      expect(innerCommand(`bash -lc '${mixed}'`)).toBe(text);
    }),
  );
});

test('is the whole where no shell, or more than a command, is shown', () => {
  for (const shown of [
    'git status',
    "python3 -c 'print(1)'",
    "bash -lc 'echo 1' extra",
    "bash -lc 'echo",
    '',
  ]) {
    expect(innerCommand(shown)).toBe(shown);
  }
});
