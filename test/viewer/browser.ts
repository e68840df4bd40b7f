import { type Browser, chromium } from 'playwright-core';
import { findBrowser } from '../../scripts/set-up/ensure-browser.ts';

/** A real Chromium without a window. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = await findBrowser(process.env);
  if (executablePath === undefined) throw new Error('this machine has no Chromium; npm test installs one');
  // A root user, as in containers, has no sandbox of Chromium's.
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}
