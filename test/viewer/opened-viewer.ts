import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { openViewer, type Viewer } from '../../src/viewer/server/viewer.ts';
import { openBrowser } from './browser.ts';

export interface OpenedViewer extends AsyncDisposable {
  ledger: Ledger;
  viewer: Viewer;
  /** A new page of the viewer, in place of the one before. Errors and messages of its console fail {@link calm}. */
  open(place?: string, options?: PageOptions): Promise<Page>;
  /** Asserts that no page has reported an error. */
  calm(): void;
}

interface PageOptions {
  width?: number;
  height?: number;
  colorScheme?: 'light' | 'dark';
}

/**
 * A viewer of a new ledger, and a browser to look at it.
 *
 * @param secrets keys that the viewer removes
 */
export async function openedViewer(secrets: string[] = []): Promise<OpenedViewer> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-view-'));
  const ledger = new Ledger(folder, systemClock);
  const viewer = await openViewer({ ledger, redactor: new Redactor(secrets), clock: systemClock });
  const browser = await openBrowser();
  // One for all pages: the first page of a context takes four times as long as another one.
  const context = await browser.newContext();
  const problems: string[] = [];
  return {
    ledger,
    viewer,
    async open(place = '/', { width = 1280, height = 800, colorScheme = 'light' } = {}) {
      const before = context.pages();
      await before[0]?.evaluate('localStorage.clear()');
      const page = await context.newPage();
      await Promise.all(before.map((each) => each.close()));
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      page.setDefaultTimeout(20_000);
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('console', (message) => problems.push(message.text()));
      await page.goto(viewer.url);
      await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      return page;
    },
    calm: () => expect(problems).toEqual([]),
    async [Symbol.asyncDispose]() {
      await browser.close();
      await viewer[Symbol.asyncDispose]();
      ledger[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    },
  };
}
