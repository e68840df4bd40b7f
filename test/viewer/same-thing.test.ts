import { afterAll, beforeAll, expect, test } from 'vitest';
import { fillBatch } from './filled-ledger.ts';
import { type OpenedViewer, openedViewer } from './opened-viewer.ts';

/** Two batches of one suite: a check was loosened, the harness is newer, and one batch was graded again. */

let opened: OpenedViewer;
let keys: number[];
beforeAll(async () => {
  opened = await openedViewer();
  const { ledger } = opened;
  const fill = (id: string, fingerprint: Record<string, string>, passes: boolean) =>
    fillBatch(ledger, {
      id,
      suite: 'quickstart',
      cases: ['greet', 'sum'],
      variants: ['codex'],
      repeats: 2,
      found: (caseName) => ({
        verdict: caseName === 'greet' && !passes ? 'failed' : 'passed',
        fingerprint: { ...fingerprint, verify: caseName === 'greet' ? `${fingerprint.verify}` : 'same' },
      }),
    });
  keys = [
    await fill('batch_before', { verify: 'strict', harness: 'codex 1', profile: 'a' }, false),
    await fill('batch_after', { verify: 'loose', harness: 'codex 2', profile: 'b' }, true),
  ];
  const [trial] = ledger.queue.ofBatch(keys[0] ?? 0);
  await ledger.gradings.add(trial?.key ?? 0, { verdict: 'passed', record: {}, basis: 'x' });
});
afterAll(() => opened?.[Symbol.asyncDispose]());

test('the headline of a comparison says what else differs', async () => {
  const page = await opened.open(`/compare?left=${keys[0]}&right=${keys[1]}`);
  const finding = page.getByRole('region', { name: 'Finding' });
  await finding.waitFor();
  expect(await finding.textContent()).toContain('ask and check the same: 1 case.');
  expect(await finding.textContent()).toContain('B also has another harness (codex 1 → codex 2), profile.');
  expect(await page.locator('.sides').textContent()).toContain('1 graded again: 50 % → 75 % in the batch');
  expect(await page.getByRole('row', { name: 'redefined' }).textContent()).toContain('greet verify');
  opened.calm();
});

test('a batch that was graded again is marked in the list, and on its page', async () => {
  for (const place of ['/', `/batch/${keys[0]}`]) {
    const page = await opened.open(place);
    await page.getByText('1 graded again: 50 % → 75 % in the batch').waitFor();
  }
  opened.calm();
});
