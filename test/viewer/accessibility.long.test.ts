import axe from 'axe-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fillBatch } from './filled-ledger.ts';
import { type OpenedViewer, openedViewer } from './opened-viewer.ts';
import { story } from './story.ts';

let opened: OpenedViewer;
beforeAll(async () => {
  opened = await openedViewer();
  const found = await story(opened.ledger);
  for (const id of ['batch_a', 'batch_b', 'batch_c']) {
    await fillBatch(opened.ledger, {
      ...{ id, suite: 'quickstart', cases: ['one', 'two'], variants: ['v', 'w'], repeats: 2 },
      found: (caseName, variant) => {
        if (variant === 'w') return { verdict: 'passed' };
        if (caseName === 'one') return found;
        return { verdict: 'void', cause: { kind: 'model', phase: 'harness', message: 'overloaded' } };
      },
    });
  }
});
afterAll(() => opened[Symbol.asyncDispose]());

const places = [
  ['batches', '/'],
  ['a batch as a grid', '/batch/2'],
  ['a batch as a list', '/batch/2?view=list&at=9'],
  ['a batch without matches', '/batch/2?q=nothing'],
  ['a comparison', '/compare?left=1&right=2'],
  ['a cell of a comparison', '/compare?left=1&right=1&leftVariant=v&rightVariant=w&case=one'],
  ['a trial', '/trial/1'],
  ['a trial without verdict', '/trial/5'],
  ['the changes of a trial', '/trial/1?tab=changes'],
  ['the checks of a trial', '/trial/1?tab=checks'],
  ['the task of a trial', '/trial/1?tab=task'],
  ['the artifacts of a trial', '/trial/1?tab=artifacts'],
  ['the environment of a trial', '/trial/1?tab=environment'],
  ['the attempts of a trial', '/trial/1?tab=attempts'],
  ['the raw record of a trial', '/trial/1?tab=raw'],
] as const;

interface Violation {
  id: string;
  nodes: { html: string; failureSummary: string }[];
}

/** What axe finds, with the help open if it is asked for. */
async function violations(
  place: string,
  options: { width: number; colorScheme: 'light' | 'dark' },
  keys = '',
) {
  const page = await opened.open(place, options);
  await expect.poll(() => page.getByText('Loading …').count()).toBe(0);
  for (const key of keys) await page.keyboard.press(key);
  // Chromium's own evaluation: the page's policy lets no other script in.
  await page.evaluate(axe.source);
  const { violations: found } = (await page.evaluate('axe.run()')) as { violations: Violation[] };
  await page.context().close();
  return found.map(({ id, nodes }) => ({
    id,
    nodes: nodes.map((node) => `${node.html} ${node.failureSummary}`),
  }));
}

test.each(places)('axe finds nothing in %s: light, dark and narrow', async (_, place) => {
  expect(await violations(place, { width: 1280, colorScheme: 'light' })).toEqual([]);
  expect(await violations(place, { width: 1280, colorScheme: 'dark' })).toEqual([]);
  expect(await violations(place, { width: 360, colorScheme: 'light' })).toEqual([]);
});

test('axe finds nothing in the help', async () => {
  expect(await violations('/batch/2', { width: 1280, colorScheme: 'dark' }, '?')).toEqual([]);
});
