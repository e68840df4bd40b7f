import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { openViewer } from '../../src/viewer/server/viewer.ts';
import { openBrowser } from '../../test/viewer/browser.ts';
import { fillLedger, type SetClock } from './filled-ledger.ts';

const viewport = { width: 1280, height: 800 };
/** When the pictures say that they were made. */
const now = Date.UTC(2026, 2, 12, 15, 4);

/** Takes pictures of the viewer's pages in light and dark. Resolves with their names in the folder. */
export async function takeScreenshots(folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  await using data = await mkdtempDisposable(join(tmpdir(), 'offsite-screenshots-'));
  const clock: Clock & SetClock = { ...systemClock, at: now - 50 * 60_000, now: () => clock.at };
  using ledger = new Ledger(data.path, clock);
  const { batch, trial } = await fillLedger(ledger, clock);
  const pages = {
    batch: { place: `/batch/${batch}`, wanted: '.row a' },
    trial: { place: `/trial/${trial}`, wanted: '.entry' },
    changes: { place: `/trial/${trial}?tab=changes`, wanted: '.diff' },
    compare: {
      place: `/compare?left=${batch}&right=${batch}&leftVariant=large&rightVariant=small`,
      wanted: '.row a',
    },
  };

  await using viewer = await openViewer({ ledger, redactor: new Redactor([]), clock: systemClock });
  await using browser = await openBrowser();
  const names: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    const settings = { viewport, colorScheme, timezoneId: 'UTC', locale: 'en-GB' };
    await using context = await browser.newContext(settings);
    for (const [page, { place, wanted }] of Object.entries(pages)) {
      const opened = await context.newPage();
      await opened.clock.setFixedTime(now);
      await opened.goto(viewer.url);
      await opened.evaluate(`location.hash = ${JSON.stringify(place)}`);
      await opened.getByText('live', { exact: true }).waitFor();
      await opened.locator(wanted).first().waitFor();
      await opened.getByText(/^(Loading|reading \d)/).waitFor({ state: 'detached' });
      const name = `${page}-${colorScheme}.png`;
      await writeFile(join(folder, name), await stillPicture(opened));
      await opened.close();
      names.push(name);
    }
  }
  return names;
}

/** A picture of a page that no longer changes: parts of it arrive one after the other. */
async function stillPicture(page: Page): Promise<Buffer> {
  let last = await page.screenshot();
  for (let more = 0; more < 20; more++) {
    await page.waitForTimeout(200);
    const next = await page.screenshot();
    if (next.equals(last)) return next;
    last = next;
  }
  throw new Error(`${page.url()} does not come to rest`);
}
