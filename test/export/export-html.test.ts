import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { exportHtml, type HtmlExport } from '../../src/export/export-html.ts';
import { writeExport } from '../../src/export/write-export.ts';
import { auditOf, keepAudit } from '../../src/ledger/audits.ts';
import { findBatch } from '../../src/ledger/find.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { openBrowser } from '../viewer/browser.ts';
import { fillBatch } from '../viewer/filled-ledger.ts';
import { story } from '../viewer/story.ts';

const hostile = '</script><script>document.title = "taken"</script><!--';
const key = 'sk-a-key-that-was-told-later';

let folder: string;
let ledger: Ledger;
let browser: Browser;
let context: BrowserContext;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-html-'));
  ledger = new Ledger(folder, systemClock);
  browser = await openBrowser();
  context = await browser.newContext({ offline: true });
  const found = await story(ledger);
  await fillBatch(ledger, {
    id: 'batch_told',
    suite: hostile,
    cases: ['fix-add', hostile],
    variants: ['a'],
    found: (caseName) =>
      caseName === 'fix-add' ? found : { verdict: 'passed', finalMessage: `${hostile} ${key}` },
  });
});
afterAll(async () => {
  await browser?.close();
  ledger?.[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});

/** Exports the batch. Resolves with the file and what the export says about itself. */
async function exported({
  batch: reference = 'told',
  to: file = join(folder, 'report.html'),
  ...options
}: Partial<HtmlExport> & { batch?: string; to?: string } = {}) {
  const parts = {
    ledger,
    redactor: new Redactor([key]),
    now: Date.now(),
    maxBytes: 50_000_000,
    signal: new AbortController().signal,
    ...options,
  };
  const counts = { trials: 0, leftOut: 0 };
  const batch = findBatch(parts.ledger.records, reference);
  await writeExport(file, async (write) => {
    Object.assign(counts, await exportHtml(batch, parts, write));
  });
  return { file, counts };
}

/** Opens a file without a network. What the page reports or asks for is a problem. */
async function opened(file: string): Promise<{ page: Page; problems: string[] }> {
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const problems: string[] = [];
  const address = pathToFileURL(file).href;
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => problems.push(message.text()));
  page.on('request', (request) => {
    if (!request.url().startsWith('file:') || request.url().split('#')[0] !== address)
      problems.push(`asked for ${request.url()}`);
  });
  await page.goto(address);
  await page.getByRole('table', { name: 'Cases and variants' }).waitFor();
  return { page, problems };
}

const trial = (page: Page, mark: string) => page.getByRole('link').filter({ hasText: mark });

describe('an exported page', () => {
  test('shows the batch, and why a trial failed, with its diff, without a network', async () => {
    const { page, problems } = await opened((await exported()).file);
    await trial(page, '✗').click();
    await page.getByText('AssertionError').first().waitFor();
    await page.getByRole('tab', { name: /Changes/ }).click();
    await page.getByText('return a + b + 1;').first().waitFor();
    await page.getByRole('tab', { name: /Environment/ }).click();
    await page.getByText('npm install -g').first().waitFor();
    expect(problems).toEqual([]);
  });

  test('names and texts of others are text in it, and a key is in none of its data', async () => {
    const { file } = await exported();
    const { page, problems } = await opened(file);
    expect(await page.title()).not.toBe('taken');
    await trial(page, '✓').click();
    await page.getByRole('tab', { name: /Raw/ }).click();
    await page.getByText('finalMessage').first().waitFor();
    const shown = await page.locator('body').innerText();
    expect(shown).toContain('document.title');
    expect(shown).not.toContain(key);
    expect(await page.title()).not.toBe('taken');
    expect(problems).toEqual([]);
    expect(readFileSync(file, 'utf8').includes('<script>document')).toBe(false);
  });

  test('has bodies of model traffic only with outputs', async () => {
    const body = async (options: Partial<HtmlExport>) => {
      const { page } = await opened((await exported(options)).file);
      await trial(page, '✗').click();
      await page.getByText('large-1').first().waitFor();
      return page.locator('script[id^="data-blob-"]').count();
    };
    expect(await body({ withOutputs: true })).toBeGreaterThan(await body({}));
  });

  test('leaves out trials that passed first if it would be too large, and says so in their place', async () => {
    const whole = readFileSync((await exported()).file).byteLength;
    const empty = readFileSync((await exported({ maxBytes: 0 })).file).byteLength;
    const { file, counts } = await exported({ maxBytes: whole - empty - 100 });
    expect(counts).toEqual({ trials: 1, leftOut: 1 });
    const { page } = await opened(file);
    await trial(page, '✓').click();
    await page.getByText('This trial is not in the file').waitFor();
  });

  test('shows beside a verdict how far it was audited, with dates, commit, and where it was exported', async () => {
    ledger.records.run('UPDATE batches SET commit_id = ?, commit_dirty = 1', 'a'.repeat(40));
    const { key: trialKey } = ledger.records.get("SELECT key FROM trials WHERE verdict = 'failed'") ?? {};
    const level = (name: 'intact' | 'consistent', state: 'held' | 'contradicted') => ({
      level: name,
      state,
      contradictions: [],
      unchecked: [],
    });
    keepAudit(ledger.records, Number(trialKey), {
      at: Date.UTC(2026, 10, 27, 12),
      levels: [level('intact', 'held'), level('consistent', 'held')],
    });
    const { page } = await opened((await exported({ now: Date.UTC(2026, 10, 28, 12) })).file);
    await page.getByText('audited: 1 consistent').waitFor();
    const cell = page.getByRole('cell').filter({ hasText: '✗' });
    expect(await cell.innerText()).toContain('consistent');
    await page.getByText(/exported .*28.*2026.* by Offsite .* on linux/).waitFor();
    await page.getByText('at commit aaaaaaaa-dirty').waitFor();
    await trial(page, '✗').click();
    const chip = page.getByRole('region', { name: 'Verdict' }).getByText('consistent', { exact: true });
    expect(await chip.getAttribute('title')).toMatch(/audited .*27.*2026/);
    // A cheaper audit that comes later does not hide what an earlier one found.
    keepAudit(ledger.records, Number(trialKey), { at: 0, levels: [level('intact', 'contradicted')] });
    expect(auditOf(ledger.records, Number(trialKey))).toMatchObject({
      standing: 'contradicted',
      levels: [{ state: 'contradicted' }, { level: 'consistent', state: 'held' }],
    });
  });

  test('is compared with another one, which is chosen or dropped onto it, also if both have the same keys', async () => {
    const other = join(folder, 'other');
    const second = join(folder, 'second.html');
    using otherLedger = new Ledger(other, systemClock);
    await fillBatch(otherLedger, {
      id: 'batch_later',
      suite: 'later',
      cases: ['fix-add', hostile],
      variants: ['a'],
      found: () => ({ verdict: 'passed', finalMessage: 'It works now.' }),
    });
    const { file } = await exported();
    await exported({ ledger: otherLedger, batch: 'later', to: second });
    const { page, problems } = await opened(file);
    const chooser = page.getByLabel('Another exported page');
    await chooser.setInputFiles({ name: 'notes.html', mimeType: 'text/html', buffer: Buffer.from('<p>no') });
    await page.getByRole('alert').getByText('notes.html is no page').waitFor();
    await chooser.setInputFiles(second);
    await page.getByRole('heading', { name: 'Compare' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    const row = page.getByRole('row').filter({ hasText: 'fix-add' });
    // One case is noise, and the row says no more than the headline.
    expect(await row.innerText()).toContain('better');
    await row.getByRole('link').first().click();
    await page.getByRole('button', { name: 'All cases' }).waitFor();

    const again = (await opened(file)).page;
    const content = JSON.stringify(readFileSync(second, 'utf8'));
    const dataTransfer = await again.evaluateHandle(`(() => {
      const given = new DataTransfer();
      given.items.add(new File([${content}], 'second.html', { type: 'text/html' }));
      return given;
    })()`);
    await again.dispatchEvent('body', 'drop', { dataTransfer });
    await again.getByRole('heading', { name: 'Compare' }).waitFor();
    await again.getByRole('link', { name: /later/ }).click();
    await trial(again, '✓').first().click();
    await again.getByRole('tab', { name: /Raw/ }).click();
    await again.getByText('It works now.').first().waitFor();
    await again.goto(`${pathToFileURL(file).href}#/batch/${2 ** 40 * 5 + 1}`);
    await again.getByText('add that file again').waitFor();
    expect(problems).toEqual([]);
  });

  test('has only the verdicts that were asked for', async () => {
    const { file, counts } = await exported({ only: ['failed'] });
    expect(counts).toEqual({ trials: 1, leftOut: 0 });
    const { page } = await opened(file);
    expect(await trial(page, '✓').count()).toBe(0);
  });
});
