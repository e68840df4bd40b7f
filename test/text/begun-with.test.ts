import { expect, test } from 'vitest';
import { begunWith } from '../../src/text/nearest.ts';

test('a name, or the beginning of one, means it, and the beginning of several means all of them', () => {
  const names = ['house', 'house/bash', 'house/bash/careful', 'sonnet/codex'];
  expect(begunWith('house/bash', names)).toEqual(['house/bash']);
  expect(begunWith('son', names)).toEqual(['sonnet/codex']);
  expect(begunWith('house/', names)).toEqual(['house/bash', 'house/bash/careful']);
  expect(begunWith('codex', names)).toEqual([]);
  expect(begunWith('', names)).toEqual([]);
});
