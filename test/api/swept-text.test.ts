import { expect, test } from 'vitest';
import { sweptText } from '../../src/api/swept-text.ts';

test('what a sweep removed may be of another data folder, and is of a process that is gone', () => {
  const object = { id: 'a', name: 'a', instance: 'i', labels: {}, createdAt: 0 };
  const removed = [
    { ...object, kind: 'container' as const },
    { ...object, kind: 'image' as const },
  ];
  expect(sweptText(removed, 'the engine other')).toBe(
    'removed from the engine other: 1 container, of this or another data folder, whose Offsite process no longer ' +
      'runs, and 1 snapshot that newer ones replaced',
  );
});
