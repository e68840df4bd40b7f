import { expect, test } from 'vitest';
import { messageOf, protectedChanges } from '../../src/validate/integrity.ts';
import { needsNames, suspects } from '../../src/validate/tampering/suspects.ts';

const names = new Set(['python3', 'libc.so.6', 'test']);

test.each([
  ['a program of the image', '/usr/bin/bash', true],
  ['a setting of the image', '/etc/profile', true],
  ['a program under the name of another', '/usr/local/sbin/python3', false],
  ['a library under the name of another', '/usr/local/lib/libc.so.6', false],
  ["the loader's settings", '/etc/ld.so.preload', false],
  ['a startup file of python, wherever it lies', '/root/.local/lib/python3.11/site-packages/x.pth', false],
  ['another', '/usr/lib/python3/dist-packages/sitecustomize.py', false],
  ['what python runs in place of a source', '/usr/lib/python3.11/__pycache__/os.cpython-311.pyc', false],
])('%s is suspicious when changed', (_, path, inImage) => {
  expect(suspects([{ path, inImage }], names)).toEqual([path]);
});

test.each([
  ['a new program under a name of its own', '/usr/local/bin/my-tool', false],
  ['a file in a folder of its own', '/opt/tool/bin/python3', false],
  ["git's settings of the user", '/root/.gitconfig', false],
  ['what the engine writes', '/etc/resolv.conf', true],
  ['a module that was installed', '/usr/lib/python3/dist-packages/requests/api.py', false],
])('%s is not', (_, path, inImage) => {
  expect(suspects([{ path, inImage }], names)).toEqual([]);
});

test('the names of the image are only asked for where a new file could stand in for another', () => {
  expect(needsNames([{ path: '/opt/x', inImage: false }])).toBe(false);
  expect(needsNames([{ path: '/usr/local/bin/x', inImage: false }])).toBe(true);
});

test('protected files are told by globs, hidden ones and odd names too, and by the folder that went with them', () => {
  const changed = ['src/a.js', 'test/.hidden', 'test/deep/b\nc', 'spec', 'other'];
  expect(protectedChanges(['test/**', 'spec/*.js'], changed)).toEqual([
    'test/.hidden',
    'test/deep/b\nc',
    'spec',
  ]);
  expect(protectedChanges(['test/**'], ['.'])).toEqual(['.']);
});

test('changed files are told as texts that no terminal obeys, and only so many', () => {
  const changed = Array.from({ length: 25 }, (_, index) => `\u001b[2J${index}`);
  const message = messageOf({ kind: 'protected', changed });
  expect(message).not.toContain('\u001b');
  expect(message).toContain('and 5 more');
});
