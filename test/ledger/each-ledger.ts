import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { eachFolder, folder } from '../each-folder.ts';

/** The ledger of the test that runs, in files that call {@link eachLedger}. */
export let ledger: Ledger;

/** Gives each test of a file a folder of its own, with a ledger in it. Call it in the file. */
export function eachLedger({ clock = systemClock, at = '.' }: { clock?: Clock; at?: string } = {}): void {
  eachFolder();
  beforeEach(() => {
    ledger = new Ledger(join(folder, at), clock);
  });
  afterEach(() => ledger[Symbol.dispose]());
}
