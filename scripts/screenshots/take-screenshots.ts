import { mkdtempDisposable, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { exportHtml } from '../../src/export/export-html.ts';
import type { BatchKey } from '../../src/ledger/batches.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { openViewer } from '../../src/viewer/server/viewer.ts';
import { openBrowser } from '../../test/viewer/browser.ts';
import { fillLedger, type SetClock } from './filled-ledger.ts';
import { shownPages, violations } from './shown-pages.ts';

const viewports = [
  { width: 390, height: 844 },
  { width: 1280, height: 780 },
  { width: 2560, height: 1440 },
];
/** When the pictures say that they were made. */
const now = Date.UTC(2026, 2, 12, 15, 4);
const monthsLater = Date.UTC(2026, 7, 1);

export interface Screenshot {
  page: string;
  colorScheme: 'light' | 'dark';
  width: number;
  picture: Buffer;
  /** What axe finds on the page. */
  violations: { id: string; nodes: string[] }[];
}

/** Takes pictures of all the viewer's pages: light and dark, at the width of a phone, a laptop and a wall. */
export async function* takeScreenshots(): AsyncGenerator<Screenshot> {
  await using data = await mkdtempDisposable(join(tmpdir(), 'offsite-screenshots-'));
  const clock: Clock & SetClock = { ...systemClock, at: now - 50 * 60_000, now: () => clock.at };
  using ledger = new Ledger(data.path, clock);
  const filled = await fillLedger(ledger, clock);
  using none = new Ledger(join(data.path, 'none'), clock);
  const redactor = new Redactor([]);
  await using viewer = await openViewer({ ledger, redactor, clock: systemClock });
  await using empty = await openViewer({ ledger: none, redactor, clock: systemClock });
  const exported = join(data.path, 'exported.html');
  await exportBatch(ledger, filled.batch, exported);
  /** Pages that are opened anew. */
  const others = {
    empty: empty.url,
    'no-access': new URL(viewer.url).origin,
    exported: pathToFileURL(exported).href,
  };
  await using browser = await openBrowser();
  for (const viewport of viewports)
    for (const colorScheme of ['light', 'dark'] as const) {
      const settings = { viewport, colorScheme, timezoneId: 'UTC', locale: 'en-GB' };
      const taken = async (page: string, opened: Page): Promise<Screenshot> => {
        const picture = await stillPicture(opened);
        return { page, colorScheme, width: viewport.width, picture, violations: await violations(opened) };
      };
      await using context = await browser.newContext(settings);
      const opened = await context.newPage();
      await opened.clock.setFixedTime(now);
      await opened.goto(viewer.url);
      await opened.getByText('live', { exact: true }).waitFor();
      for (const [page, address] of Object.entries(shownPages(filled))) {
        await opened.evaluate(`location.hash = ${JSON.stringify(address)}`);
        if (page === 'help') await opened.keyboard.press('?');
        if (page === 'artifacts')
          for (const file of await opened.locator('details.file').all())
            await file.locator('summary').click();
        yield await taken(page, opened);
        if (page === 'help') await opened.keyboard.press('Escape');
      }
      for (const [page, address] of Object.entries(others)) {
        await using stranger = await browser.newContext(settings);
        const tab = await stranger.newPage();
        await tab.clock.setFixedTime(monthsLater);
        await tab.goto(address);
        await tab.getByRole('heading', { level: 1 }).waitFor();
        yield await taken(page, tab);
      }
    }
}

async function exportBatch(ledger: Ledger, key: BatchKey, path: string): Promise<void> {
  await using file = await open(path, 'w');
  const options = {
    ledger,
    redactor: new Redactor([]),
    now,
    maxBytes: 1e7,
    signal: AbortSignal.timeout(60_000),
  };
  await exportHtml(ledger.batches.byKey(key), options, (text) => file.appendFile(text));
}

/** A picture of a page that no longer changes: parts of it arrive one after the other. */
async function stillPicture(page: Page): Promise<Buffer> {
  let last = await page.screenshot();
  for (let more = 0; more < 20; more++) {
    await page.waitForTimeout(200);
    const next = await page.screenshot();
    const isLoading = (await page.getByText(/^(Loading|reading \d)/).count()) > 0;
    if (next.equals(last) && !isLoading) return next;
    last = next;
  }
  throw new Error(`${page.url()} does not come to rest`);
}
