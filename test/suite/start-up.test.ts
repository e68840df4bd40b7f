import { expect, test } from 'vitest';
import { isIdle, startUpOf } from '../../src/suite/environment.ts';

const image = { entrypoint: ['/entry', '-x'], command: ['serve'] };
const idle = ['sh', '-c', 'sleep infinity'];

test.each([
  [undefined, undefined],
  [{}, ['/entry', '-x', 'serve']],
  [{ command: ['other'] }, ['/entry', '-x', 'other']],
  [{ entrypoint: ['/mine'] }, ['/mine']],
  [{ entrypoint: ['/mine'], command: ['a'] }, ['/mine', 'a']],
  [{ entrypoint: [] }, undefined],
  [{ entrypoint: ['tini', '-g', '--', '/mine'], command: ['a'] }, ['/mine', 'a']],
  [{ entrypoint: ['/usr/bin/tini', '--'], command: idle }, undefined],
])('the program of %j is that of an engine', (given, argv) => {
  expect(startUpOf(given, image)).toEqual(argv);
});

test.each([
  [idle, true],
  [['bash'], true],
  [['/usr/bin/python3'], true],
  [['python3', 'app.py'], false],
  [['sh', '-c', 'serve & sleep infinity'], false],
])('%j only keeps its container alive: %s', (command, is) => {
  expect(isIdle(command)).toBe(is);
});
