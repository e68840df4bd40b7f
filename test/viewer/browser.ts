import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const candidates = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** A real Chromium without a window. */
export function openBrowser(): Promise<Browser> {
  const executablePath = candidates.find(existsSync);
  if (executablePath === undefined) throw new Error(`none of ${candidates.join(', ')} exists`);
  // A root user, as in containers, has no sandbox of Chromium's.
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}
