import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type LaunchFile, launchCommand } from '../../src/harness/cli-launch.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'offsite-launch-'));
});
afterEach(() => rmSync(home, { recursive: true }));

async function launch(file: Omit<LaunchFile, 'path'>): Promise<string> {
  const files = [{ path: '~/settings', ...file }];
  const { argv, env } = launchCommand({ argv: ['/bin/true'], env: {}, files, versionFile: '/nothing' });
  const [shell = '', ...args] = argv;
  await execa(shell, args, { env: { ...env, HOME: home } });
  return readFileSync(join(home, 'settings'), 'utf8');
}

test('what is appended to a file of the profile is there once, however many sessions there are', async () => {
  writeFileSync(join(home, 'settings'), 'of = "the profile"\n[*]');
  const file = { content: '[a]\nb = "*?$(x)"\n\n', existing: 'appended-to' as const };
  const whole = `of = "the profile"\n[*]\n${file.content}`;
  expect(await launch(file)).toBe(whole);
  expect(await launch(file)).toBe(whole);
  expect(await launch({ ...file, content: '[c]\n' })).toBe(`${whole}\n[c]\n`);
});

test('a file replaces one that is there, or leaves it', async () => {
  expect(await launch({ content: 'one' })).toBe('one');
  expect(await launch({ content: 'two' })).toBe('two');
  expect(await launch({ content: 'three', existing: 'kept' })).toBe('two');
});
