import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { BatchRow } from '../../src/viewer/model/shapes.ts';
import { offsite, start } from '../cli/offsite.ts';
import { openPlace as openEmptyPlace, type Place } from '../cli/place.ts';
import { openBrowser } from './browser.ts';
import { fillBatch } from './filled-ledger.ts';

const address = /http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]+/;

/** A place whose data folder exists: `offsite view` makes none. */
function openPlace(): Place {
  const place = openEmptyPlace();
  new Ledger(place.dataFolder, systemClock)[Symbol.dispose]();
  return place;
}

async function batchesOf(url: string): Promise<BatchRow[]> {
  const headers = { authorization: `Bearer ${new URL(url).hash.slice('#token='.length)}` };
  return (await (await fetch(new URL('/api/batches', url), { headers })).json()) as BatchRow[];
}

test('`offsite view` prints its address, names a port that is in use, shows what another process writes, and ends at Ctrl-C', async () => {
  using place = openPlace();
  // Without a browser to open, the address is still there.
  const view = start(place, ['view', '--open'], { env: { PATH: join(place.folder, 'none') } });
  const [url] = await view.printed(address);
  const taken = await offsite(place, ['view', '--port', new URL(url).port]);
  expect(taken.exitCode).toBe(2);
  expect(taken.stderr).toContain('Choose another port');
  expect(await batchesOf(url)).toEqual([]);
  using ledger = new Ledger(place.dataFolder, systemClock);
  await fillBatch(ledger, {
    id: 'batch_new',
    cases: ['c'],
    variants: ['v'],
    found: () => ({ verdict: 'passed' }),
  });
  expect(await batchesOf(url)).toMatchObject([{ id: 'batch_new', passed: 1 }]);
  view.kill('SIGINT');
  const { exitCode, stdout, stderr } = await view.ended;
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(new RegExp(`^${address.source}\n$`));
  expect(stderr).toContain('Ctrl-C ends it');
  expect(stderr).not.toContain('trials');
});

test('`--open` opens the page, and no argument of a program holds a secret', async () => {
  using place = openPlace();
  const opener = place.write(
    'bin/xdg-open',
    '#!/bin/sh\nprintf %s "$*" > "$0.part" && mv "$0.part" "$0.opened"\n',
  );
  chmodSync(opener, 0o755);
  const env = { PATH: `${dirname(opener)}:${process.env.PATH}`, HOME: place.folder };
  const view = start(place, ['view', '--open'], { env });
  const [url] = await view.printed(address);
  await expect.poll(() => existsSync(`${opener}.opened`)).toBe(true);
  const file = readFileSync(`${opener}.opened`, 'utf8');
  expect(file).toMatch(/^\/[^#]+\/offsite-open-\w+\/offsite\.html$/);
  expect(readFileSync(file, 'utf8')).toContain(`url=${url}"`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
  const browser = await openBrowser();
  const page = await browser.newPage();
  await page.goto(`file://${file}`);
  await page.getByRole('heading', { level: 1, name: 'Batches' }).waitFor();
  expect(page.url()).not.toContain('token');
  await browser.close();
  await expect.poll(() => existsSync(dirname(file))).toBe(false);
  view.kill('SIGTERM');
  expect((await view.ended).exitCode).toBe(0);
});

test('the file for the browser is removed when the viewer ends before anybody uses it', async () => {
  using place = openPlace();
  const opener = place.write('bin/xdg-open', '#!/bin/sh\n');
  chmodSync(opener, 0o755);
  const env = { PATH: `${dirname(opener)}:${process.env.PATH}`, HOME: place.folder };
  const view = start(place, ['view', '--open'], { env });
  const isThere = () => readdirSync(place.folder).some((name) => name.startsWith('offsite-open-'));
  await expect.poll(isThere).toBe(true);
  view.kill('SIGINT');
  expect((await view.ended).exitCode).toBe(0);
  expect(isThere()).toBe(false);
});
