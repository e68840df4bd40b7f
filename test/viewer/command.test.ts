import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { BatchRow } from '../../src/viewer/model/shapes.ts';
import { start } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { fillBatch } from './filled-ledger.ts';

const address = /http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]+/;

async function batchesOf(url: string): Promise<BatchRow[]> {
  const headers = { authorization: `Bearer ${new URL(url).hash.slice('#token='.length)}` };
  return (await (await fetch(new URL('/api/batches', url), { headers })).json()) as BatchRow[];
}

test('`offsite view` prints its address, shows what another process writes, and ends at Ctrl-C', async () => {
  using place = openPlace();
  const view = start(place, ['view']);
  const [url] = await view.printed(address);
  expect(await batchesOf(url)).toEqual([]);
  using ledger = new Ledger(place.dataFolder, systemClock);
  await fillBatch(ledger, {
    ...{ id: 'batch_new', cases: ['c'], variants: ['v'] },
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

test('`--open` gives the browser an address that is not the token', async () => {
  using place = openPlace();
  const opener = place.write(
    'bin/xdg-open',
    '#!/bin/sh\nprintf %s "$1" > "$0.part" && mv "$0.part" "$0.opened"\n',
  );
  chmodSync(opener, 0o755);
  const env = { PATH: `${dirname(opener)}:${process.env.PATH}` };
  const view = start(place, ['view', '--open'], { env });
  const [url] = await view.printed(address);
  await expect.poll(() => existsSync(`${opener}.opened`)).toBe(true);
  const opened = readFileSync(`${opener}.opened`, 'utf8');
  expect(opened).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#ticket=[\w-]+$/);
  expect(opened).not.toContain(new URL(url).hash.slice('#token='.length));
  view.kill('SIGTERM');
  await view.ended;
});

test('without a browser to open, the address is still there', async () => {
  using place = openPlace();
  const view = start(place, ['view', '--open'], { env: { PATH: join(place.folder, 'none') } });
  const [url] = await view.printed(address);
  expect(await batchesOf(url)).toEqual([]);
  view.kill('SIGTERM');
  expect((await view.ended).exitCode).toBe(0);
});

test('a port that is in use is named', async () => {
  using place = openPlace();
  const first = start(place, ['view']);
  const [url] = await first.printed(address);
  const { exitCode, stderr } = await start(place, ['view', '--port', new URL(url).port]).ended;
  expect(exitCode).toBe(2);
  expect(stderr).toContain('Choose another port');
  first.kill('SIGTERM');
  await first.ended;
});
