import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { checkLedger } from '../../src/ledger/check.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { pruneLedger } from '../../src/ledger/prune.ts';
import type { LeftState } from '../../src/record/files.ts';
import { passed } from '../cli/show/kept-ledger.ts';
import { folder } from '../each-folder.ts';
import { eachLedger, ledger } from './each-ledger.ts';
import { report } from './queue-trial.ts';

const never = new AbortController().signal;
let now = 1_000_000;
const clock = { ...systemClock, now: () => (now += 1000) };
eachLedger({ clock });

/** Finishes a trial that leaves these bytes; returns its key. */
async function finished(id: string, content: string): Promise<{ key: number; left: LeftState }> {
  const { sha256, byteSize } = await ledger.workspaces.store(Readable.from([Buffer.from(content)]));
  const left: LeftState = { kind: 'archive', sha256, byteSize: 5 * byteSize, storedSize: byteSize };
  const details = { caseId: 'c', caseName: 'c', variant: 'v' };
  const { key } = ledger.batches.add({
    service: 'embedded',
    id,
    suite: 'Suite',
    file: undefined,
    runs: [{ id: `run_${id}`, taskIndex: 0, ...details }],
  });
  const [run] = ledger.batches.runs(key);
  ledger.queue.add([{ key: run?.key ?? 0, setup: undefined, ordinals: [0] }]);
  const [trial] = ledger.queue.ofBatch(key);
  const attempt = ledger.trials.beginAttempt(trial?.key ?? 0);
  await ledger.trials.finish(attempt, {
    verdict: 'passed',
    result: { ...passed, left },
    report,
    left,
  });
  return { key: attempt.trial, left };
}

const files = () =>
  readdirSync(ledger.workspaces.folder, { recursive: true, withFileTypes: true }).filter((each) =>
    each.isFile(),
  );

test('the oldest archives are removed first, until the others fit', async () => {
  const [one, two, three] = [
    await finished('a', 'x'.repeat(100)),
    await finished('b', 'y'.repeat(100)),
    await finished('c', 'z'.repeat(100)),
  ];
  expect(ledger.workspaces.sum()).toEqual({ count: 3, bytes: 300 });
  expect(await ledger.workspaces.free(300)).toEqual({ count: 0, bytes: 0 });
  expect(await ledger.workspaces.free(250)).toEqual({ count: 1, bytes: 100 });
  expect(ledger.workspaces.of(one.key)?.removedAt).toBeGreaterThan(0);
  expect(ledger.workspaces.of(two.key)?.removedAt).toBeUndefined();
  expect(files()).toHaveLength(2);
  await ledger.workspaces.free(0);
  expect(files()).toEqual([]);
  expect(ledger.workspaces.of(three.key)).toMatchObject({ kind: 'archive', byteSize: 500, storedSize: 100 });
  // Results name archives that are no blobs, and that may be gone.
  expect(await checkLedger(ledger, never)).toMatchObject({ missing: [], damaged: [] });
});

test('an archive that two trials left stays until both are removed', async () => {
  await finished('a', 'same');
  const two = await finished('b', 'same');
  await ledger.workspaces.free(4);
  expect(files()).toHaveLength(1);
  expect(two.left).toMatchObject({ kind: 'archive' });
  await ledger.workspaces.discard(two.left);
  expect(files()).toHaveLength(1);
  await ledger.workspaces.free(0);
  expect(files()).toEqual([]);
});

test('only the owner can read archives', async () => {
  await finished('a', 'secret');
  const [file] = files();
  expect(statSync(ledger.workspaces.folder).mode & 0o777).toBe(0o700);
  expect(statSync(join(file?.parentPath ?? '', file?.name ?? '')).mode & 0o777).toBe(0o600);
});

test('what a crash left is removed after a day', async () => {
  await finished('a', 'kept');
  await ledger.workspaces.store(Readable.from([Buffer.from('of a trial that never ended')]));
  writeFileSync(join(ledger.workspaces.folder, 'partial-0011'), 'half');
  await ledger.workspaces.removeLost(Date.now());
  expect(files()).toHaveLength(3);
  for (const { parentPath, name } of files()) utimesSync(join(parentPath, name), 1, 1);
  await ledger.workspaces.removeLost(Date.now());
  expect(files()).toHaveLength(1);
});

test('later gradings are kept beside a result, and go with their batch', async () => {
  const { key } = await finished('a', 'work');
  const before = ledger.trials.result(key);
  const given = {
    verdict: 'failed',
    record: { ...passed, verdict: 'failed' },
    basis: 'b',
  } as const;
  const { result } = await ledger.gradings.add(key, given);
  await ledger.gradings.add(key, { ...given, verdict: 'void' });
  expect(ledger.gradings.of(key).map(({ verdict }) => verdict)).toEqual(['failed', 'void']);
  expect(ledger.trials.result(key)).toEqual(before);
  using again = new Ledger(folder, clock);
  expect(again.gradings.of(key)).toHaveLength(2);
  const prune = (age: number) =>
    pruneLedger(ledger, { before: age, now: Date.now() + 48 * 3_600_000, dryRun: false }, never);
  await prune(0);
  expect(ledger.blobs.stat(result)).toBeDefined();
  ledger.records.run("UPDATE reports SET state = 'delivered'");
  expect((await prune(now + 1000)).batches).toBe(1);
  expect(ledger.gradings.of(key)).toEqual([]);
  expect([ledger.blobs.stat(result), files()]).toEqual([undefined, []]);
});
