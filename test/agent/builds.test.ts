import { expect, test } from 'vitest';
import { Builds } from '../../src/agent/batch-contexts.ts';
import { Semaphore } from '../../src/base/semaphore.ts';
import { specOf } from '../trial/trial-bench.ts';
import { settled } from './test-clock.ts';

const spec = specOf('true', { verify: 'true' });

/**
 * Environments that are looked for, built and had when a test says so; asked for by the runs `a`, `b` and so
 * on.
 */
function builds({ atATime = 2, signal = new AbortController().signal } = {}) {
  const steps: Record<string, { found(): void; missing(): void; built(): void; fails(): void }> = {};
  const building = new Set<string>();
  const ready: string[] = [];
  const run = async (name: string, options: { building?: (() => Promise<Disposable>) | undefined }) => {
    const looked = Promise.withResolvers<'found' | 'missing'>();
    const built = Promise.withResolvers<void>();
    steps[name] = {
      found: () => looked.resolve('found'),
      missing: () => looked.resolve('missing'),
      built: built.resolve,
      fails: () => built.reject(new Error('no room')),
    };
    if ((await looked.promise) === 'found') return;
    using _place = await options.building?.();
    building.add(name);
    await built.promise;
    building.delete(name);
  };
  const names = ['a', 'b', 'c', 'd'];
  let asked = 0;
  const prepare = (_spec: unknown, _signal: AbortSignal, options = {}) => run(names[asked++] ?? '', options);
  const under = new Builds({ sandboxes: { prepare }, permits: new Semaphore(atATime) });
  const ask = (name: string) =>
    void under.ready(name, spec, signal).then(
      () => ready.push(name),
      () => ready.push(`${name} never`),
    );
  return { steps, building, ready, ask };
}

test('trials go on in the order in which they came, in whichever their images were found', async () => {
  const { steps, ready, ask } = builds();
  for (const name of ['a', 'b', 'c']) ask(name);
  steps.c?.found();
  steps.b?.found();
  await settled();
  expect(ready).toEqual([]);
  steps.a?.found();
  await settled();
  expect(ready).toEqual(['a', 'b', 'c']);
});

test('trials whose images are there do not wait for those whose images are being built', async () => {
  const { steps, ready, ask } = builds();
  for (const name of ['a', 'b', 'a']) ask(name);
  steps.a?.missing();
  steps.b?.found();
  await settled();
  expect(ready).toEqual(['b']);
  steps.a?.built();
  await settled();
  expect(ready).toEqual(['b', 'a', 'a']);
});

test('only so many are built at a time, and what waits for that holds up nobody', async () => {
  const { steps, building, ready, ask } = builds({ atATime: 1 });
  for (const name of ['a', 'b', 'c']) ask(name);
  steps.a?.missing();
  steps.b?.missing();
  steps.c?.found();
  await settled();
  expect([...building]).toEqual(['a']);
  expect(ready).toEqual(['c']);
  steps.a?.fails();
  await settled();
  expect([...building].at(-1)).toBe('b');
  expect(ready).toEqual(['c', 'a']);
});

test('an interruption is told to all who wait', async () => {
  const interruption = new AbortController();
  const { steps, ready, ask } = builds({ signal: interruption.signal });
  ask('a');
  steps.a?.missing();
  await settled();
  interruption.abort();
  steps.a?.fails();
  await settled();
  expect(ready).toEqual(['a never']);
});
