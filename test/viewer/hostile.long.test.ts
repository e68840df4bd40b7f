import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fillBatch } from './filled-ledger.ts';
import { type OpenedViewer, openedViewer } from './opened-viewer.ts';
import { story } from './story.ts';

const esc = '\u001b';
const script = '<script>window.owned = 1</script><img src=x onerror="window.owned = 1">';
/** What an agent may write anywhere: markup, terminal control, text that runs backwards, and what hides. */
const coloured = `${esc}[31mred${esc}[0m`;
const evil = `${script}${coloured}${esc}]0;title\u0007 \u202Egnp.exe\u202C zero\u200Bwidth\u0000end`;
const shown = `${script}red\\u{1b}]0;title\\u{7} \\u{202e}gnp.exe\\u{202c} zero\\u{200b}width\\u{0}end`;

let opened: OpenedViewer;
let trial: number;
let batch: number;
const huge = `begin ${'<b>&'.repeat(1_250_000)} the end`;
beforeAll(async () => {
  opened = await openedViewer();
  const { ledger } = opened;
  const found = await story(ledger);
  const html = await ledger.blobs.put(Buffer.from(`<html>${evil}</html>`));
  const svg = await ledger.blobs.put(
    Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="window.owned=1"/>`),
  );
  const image = await ledger.blobs.put(Buffer.from('\x89PNG not a picture', 'latin1'));
  const after = { type: 'file' as const, mode: 0o644, byteSize: html.byteSize, content: html.sha256 };
  batch = await fillBatch(ledger, {
    id: `batch_${evil}`,
    suite: evil,
    cases: [evil],
    variants: [evil],
    found: () => ({
      ...found,
      finalMessage: evil,
      subject: {
        caseName: evil,
        ordinal: 0,
        model: evil,
        harness: evil,
        image: evil,
        network: evil,
        prompt: evil,
      },
      trajectory: [
        { _tag: 'command', command: evil, exitCode: 1, output: evil, startedAtMillis: 1_005_000 },
        { _tag: 'command', command: 'cat huge', exitCode: 0, output: huge, startedAtMillis: 1_006_000 },
      ],
      events: [
        { kind: 'message', at: 1_004_000, text: evil },
        { kind: 'tool', at: 1_004_500, name: evil, input: { [evil]: evil }, output: evil },
      ],
      verifySteps: [{ command: evil, exitCode: 1, output: `${evil}\n${evil}`, outputTruncated: false }],
      validations: [{ id: 'v', index: 0, name: evil, exitCode: 1, message: evil, output: { text: evil } }],
      judgments: [{ name: evil, score: 0.1, threshold: 0.5, reason: evil }],
      environment: [{ phase: 'install', description: evil, log: html.sha256 }],
      changes: [{ path: evil, kind: 'added', after }],
      artifacts: [
        { path: `${evil}.html`, ...html },
        { path: 'a.svg', ...svg },
        { path: 'a.png', ...image },
      ],
      artifactsOmitted: [evil],
    }),
  });
  trial = ledger.queue.ofBatch(batch)[0]?.key ?? 0;
});
afterAll(() => opened[Symbol.asyncDispose]());

/** Asserts that nothing that was written became part of the page. */
async function isCalm(page: Page): Promise<void> {
  expect(await page.evaluate('window.owned')).toBe(undefined);
  expect(
    await page.locator('main script, main img[src="x"], main b b, main iframe, main object').count(),
  ).toBe(0);
  const text = (await page.evaluate('document.body.textContent')) as string;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
  expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u200b\u202a-\u202e]/);
  opened.calm();
}

const tabs = ['timeline', 'changes', 'checks', 'task', 'artifacts', 'environment', 'attempts', 'raw'];

test.each<[string, () => string]>([
  ['the batches', () => '/'],
  ['a batch as a grid', () => `/batch/${batch}`],
  ['a batch as a list', () => `/batch/${batch}?view=list`],
  ['a comparison', () => `/compare?left=${batch}&right=${batch}`],
  ...tabs.map((tab): [string, () => string] => [`the ${tab} of a trial`, () => `/trial/${trial}?tab=${tab}`]),
])('what an agent wrote stays text in %s', async (_, place) => {
  const page = await opened.open(place());
  await page.getByText(shown.slice(0, 60)).first().waitFor();
  for (const summary of await page.locator('summary').all())
    if (!(await summary.evaluate('(element) => element.parentElement.open'))) await summary.click();
  await expect.poll(() => page.getByText('Loading …').count()).toBe(0);
  await isCalm(page);
});

test('everything that hides is shown, and the same text is the same everywhere', async () => {
  const page = await opened.open(`/trial/${trial}?sel=message.0`);
  const panel = page.getByRole('region', { name: 'Selected entry' });
  await panel.waitFor();
  expect(await panel.locator('pre').textContent()).toBe(shown);
  expect(await page.title()).toContain('<script>window.owned = 1</script>');
  expect(await page.title()).toContain('\\u{202e}gnp.exe');
});

test('markup that was kept as a file is text; what is no picture is none', async () => {
  const page = await opened.open(`/trial/${trial}?tab=artifacts`);
  const files = page.locator('details.file');
  await expect.poll(() => files.count()).toBe(3);
  for (const file of await files.all()) await file.locator('summary').click();
  await files.nth(1).getByText('<svg xmlns').waitFor();
  await files.nth(0).getByText('<html><script>').waitFor();
  const saves = page.locator('a[download]');
  await expect.poll(() => saves.count()).toBe(3);
  // A browser saves them, and never opens them.
  for (const link of await saves.all()) {
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    expect(download.url()).toMatch(/^blob:/);
  }
  expect(page.url()).toContain('tab=artifacts');
  expect(await page.evaluate('window.owned')).toBe(undefined);
});

test('a line of five megabytes is shown in part, and in full when asked for', async () => {
  const page = await opened.open(`/trial/${trial}?sel=command.1`);
  const panel = page.getByRole('region', { name: 'Selected entry' });
  await panel.getByText('5.0M characters').waitFor();
  expect((await panel.locator('.text').last().textContent())?.length).toBeLessThan(70_000);
  // A load that fails can be tried again.
  const busy = { status: 422, json: { message: 'the ledger is busy' } };
  await page.route('**/value?*', (route) => route.fulfill(busy), { times: 1 });
  await panel.getByRole('button', { name: 'Show all' }).click();
  await panel.getByText('the ledger is busy').waitFor();
  await panel.getByRole('button', { name: 'Show all' }).click();
  await panel.getByRole('button', { name: 'Show all' }).waitFor({ state: 'detached' });
  expect((await panel.locator('.text').last().textContent())?.length).toBe(huge.length);
});
