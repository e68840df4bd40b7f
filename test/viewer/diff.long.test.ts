import { expect, test } from 'vitest';
import { Comparisons } from '../../src/viewer/page/parts/diff.ts';

const { signal } = new AbortController();
const lines = (name: string) => Array.from({ length: 15_000 }, (_, line) => `${name}${line}`).join('\n');

test('files that are slow to compare take little time together, and the page goes on', async () => {
  const comparisons = new Comparisons();
  let ticks = 0;
  const ticking = setInterval(() => ticks++, 10);
  const slow = () => comparisons.diff(lines('a'), lines('b'), signal);
  const first = slow();
  const quick = comparisons.diff('1\n2\n', '1\n3\n', signal);
  const others = Array.from({ length: 39 }, slow);
  expect(await first).toMatchObject({ isRough: true, added: 15_000, removed: 15_000 });
  expect(await quick).toMatchObject({ isRough: false, added: 1, removed: 1 });
  for (const other of await Promise.all(others)) expect(other.isRough).toBe(true);
  clearInterval(ticking);
  expect(ticks).toBeGreaterThan(50);
});

test('a comparison that nobody waits for any more is left out, and the next one is made', async () => {
  const comparisons = new Comparisons();
  const dropped = comparisons.diff('1', '2', AbortSignal.abort(new Error('closed')));
  const next = comparisons.diff('1', '2', signal);
  await expect(dropped).rejects.toThrow('closed');
  expect(await next).toMatchObject({ added: 1, removed: 1 });
});
