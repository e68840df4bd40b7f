import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sendLargePage } from './large-page.ts';
import { scriptedService } from './scripted-service.ts';

const folder = mkdtempSync(join(tmpdir(), 'offsite-page-'));
const program = join(folder, 'page-program.mjs');

/** As JavaScript, like the package: to read TypeScript alone takes 20 MB. */
beforeAll(async () => {
  await build({
    entryPoints: [fileURLToPath(new URL('page-program.ts', import.meta.url))],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(['brief', 'setup', 'results'])(
  'a page of 1 GB is read with its %s in 400 MB of memory',
  {
    timeout: 300_000,
  },
  async (parts) => {
    let sent = 0;
    await using service = await scriptedService(async (response) => {
      sent = await sendLargePage(response, 1e9);
    });
    const { stdout } = await promisify(execFile)(process.execPath, [program, service.url, parts]);
    const { runs, trials, peakMiB } = JSON.parse(stdout);
    expect(sent).toBeGreaterThan(1e9);
    expect([runs, trials]).toEqual([20, 200]);
    expect(peakMiB).toBeLessThan(400);
  },
);
