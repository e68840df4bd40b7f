// npm packs README.md of the checkout. `prepack` takes the parts about checkouts out of it, which mean
// nothing where the package is installed; `postpack` restores the file.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const page = 'README.md';
/** The whole README while npm packs. */
const whole = 'node_modules/.cache/offsite/README.md';

/** What is between the two comments, and is left out of the package. */
const ofCheckouts = /<!-- checkout -->\n.*?<!-- end of checkout -->\n\n/gs;

/** The README of the package. Throws if a comment has lost its other one. */
export function packedReadme(readme: string): string {
  const packed = readme.replaceAll(ofCheckouts, '');
  if (/<!-- (end of )?checkout -->/.test(packed))
    throw new Error(`${page}: a comment about checkouts is alone`);
  return packed;
}

function take(): void {
  const readme = readFileSync(page, 'utf8');
  const packed = packedReadme(readme);
  // Already taken, by a packing that was interrupted.
  if (packed === readme) return;
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, readme);
  writeFileSync(page, packed);
}

function restore(): void {
  if (!existsSync(whole)) return;
  writeFileSync(page, readFileSync(whole));
  rmSync(whole);
}

if (import.meta.main) {
  if (process.argv[2] === 'take') take();
  else restore();
}
