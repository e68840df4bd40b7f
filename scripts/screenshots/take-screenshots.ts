import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { openViewer } from '../../src/viewer/server/viewer.ts';
import { openBrowser } from '../../test/viewer/browser.ts';
import { fillLedger, type SetClock } from './filled-ledger.ts';
import { shownPages, violations } from './shown-pages.ts';

const viewports = [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
  { width: 2560, height: 1440 },
];
/** When the pictures say that they were made. */
const now = Date.UTC(2026, 2, 12, 15, 4);

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
  const pages = shownPages(await fillLedger(ledger, clock));

  await using viewer = await openViewer({ ledger, redactor: new Redactor([]), clock: systemClock });
  await using browser = await openBrowser();
  for (const viewport of viewports)
    for (const colorScheme of ['light', 'dark'] as const) {
      await using context = await browser.newContext({
        viewport,
        colorScheme,
        timezoneId: 'UTC',
        locale: 'en-GB',
      });
      const opened = await context.newPage();
      await opened.clock.setFixedTime(now);
      await opened.goto(viewer.url);
      await opened.getByText('live', { exact: true }).waitFor();
      for (const [page, address] of Object.entries(pages)) {
        await opened.evaluate(`location.hash = ${JSON.stringify(address)}`);
        if (page === 'help') await opened.keyboard.press('?');
        const picture = await stillPicture(opened);
        yield { page, colorScheme, width: viewport.width, picture, violations: await violations(opened) };
        if (page === 'help') await opened.keyboard.press('Escape');
      }
    }
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
