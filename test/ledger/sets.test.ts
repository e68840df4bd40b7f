import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { checkLedger } from '../../src/ledger/check.ts';
import { pruneLedger } from '../../src/ledger/prune.ts';
import { newSetId, type SetPart, type StoredSet } from '../../src/ledger/sets.ts';
import { changedAfter, lastChange } from '../../src/ledger/trial-rows.ts';
import { eachLedger, ledger } from './each-ledger.ts';
import { report } from './queue-trial.ts';

const day = 24 * 60 * 60_000;
const never = new AbortController().signal;

let now = Date.now() - 40 * day;
eachLedger({ clock: { ...systemClock, now: () => now++ } });

async function addSet(id = newSetId()): Promise<StoredSet> {
  const plans = [await ledger.blobs.putJson(`${id} 1`), await ledger.blobs.putJson(`${id} 2`)];
  return ledger.sets.add({ id, service: 's', suite: 'many', file: undefined, plans });
}

function ask({ key: part, plan }: SetPart) {
  const lock = `batch-${part}`;
  return ledger.starts.add({ service: 's', suite: 'many', file: undefined, plan, lock, part });
}

/** Starts a part, as a batch of one run of one trial. */
async function startPart(part: SetPart, { finished }: { finished: boolean }): Promise<void> {
  const { key: start, plan } = ask(part);
  const batch = { service: 's', id: `batch-${part.key}`, suite: 'many', file: undefined, plan, start };
  const run = { id: 'run', taskIndex: 0, caseId: 'c', caseName: 'c', variant: 'v' };
  const { key } = ledger.batches.add({ ...batch, runs: [run] });
  const [added] = ledger.batches.runs(key);
  if (!added || !finished) return;
  ledger.queue.add([{ key: added.key, setup: undefined, ordinals: [0] }]);
  const [trial] = ledger.queue.ofBatch(key);
  if (!trial) throw new Error('no trial was queued');
  const attempt = ledger.trials.beginAttempt(trial.key);
  await ledger.trials.finish(attempt, { verdict: 'passed', result: { of: part.key }, report });
  ledger.outbox.become(trial.key, 'delivered');
}

const partsOf = ({ key }: StoredSet) => ledger.sets.parts(key);

test('a part has one start at most: a second one is refused unless the first certainly led to nothing', async () => {
  const set = await addSet();
  const [first, second] = partsOf(set);
  if (!first || !second) throw new Error('the set has two parts');
  const { key } = ask(first);
  expect(() => ask(first)).toThrow('asking');
  ledger.starts.unknown(key, 'no answer');
  expect(() => ask(first)).toThrow('unknown');
  ledger.starts.refused(key, 'it was refused');
  await startPart(first, { finished: false });
  expect(() => ask(first)).toThrow('started');
  await startPart(second, { finished: false });
  expect(partsOf(set).map(({ start, batch }) => [start?.state, batch?.id])).toEqual([
    ['started', `batch-${first.key}`],
    ['started', `batch-${second.key}`],
  ]);
});

test('a set is open until the trials of its last part have results', async () => {
  const set = await addSet();
  const isOpen = () => ledger.sets.open().some(({ id }) => id === set.id);
  const [first, second] = partsOf(set);
  if (!first || !second) throw new Error('the set has two parts');
  expect(isOpen()).toBe(true);
  await startPart(first, { finished: true });
  expect(isOpen()).toBe(true);
  await startPart(second, { finished: true });
  expect(isOpen()).toBe(false);
  const [batch] = ledger.batches.find(`batch-${second.key}`);
  expect(batch && ledger.sets.ofBatch(batch.key)?.id).toBe(set.id);
  expect(batch && ledger.sets.partNumbers().get(batch.key)).toEqual({ id: set.id, number: 2, of: 2 });
});

test('a set is found by the beginning of its id, and several that fit are refused', async () => {
  const [one, other] = [await addSet('set_12ab'), await addSet('set_12cd')];
  expect(ledger.sets.find('set_12a')?.key).toBe(one.key);
  expect(ledger.sets.find('set_12cd')?.key).toBe(other.key);
  expect(() => ledger.sets.find('set_12')).toThrow('several sets fit');
  expect([ledger.sets.find('set_9'), ledger.sets.find('12')]).toEqual([undefined, undefined]);
});

test('after a prune, a change is told to who knows the last change before it', async () => {
  const [gone, later] = [await addSet(), await addSet()];
  for (const part of partsOf(gone)) await startPart(part, { finished: true });
  const known = lastChange(ledger.records);
  const options = { before: Date.now() - day, now: Date.now() + 3 * day, dryRun: false };
  expect(await pruneLedger(ledger, options, never)).toMatchObject({ batches: 2 });
  const [first] = partsOf(later);
  if (!first) throw new Error('the set has two parts');
  await startPart(first, { finished: true });
  expect(changedAfter(ledger.records, known, 100).batches).toHaveLength(1);
});

test('plans of parts that are not started stay when the ledger is pruned, and a set goes as a whole', async () => {
  const [half, whole] = [await addSet(), await addSet()];
  for (const part of partsOf(half).slice(0, 1)) await startPart(part, { finished: true });
  for (const part of partsOf(whole)) await startPart(part, { finished: true });
  const options = { before: Date.now() - day, now: Date.now() + 3 * day, dryRun: false };
  expect(await pruneLedger(ledger, options, never)).toMatchObject({ batches: 2, trials: 2 });
  expect([partsOf(half).map(({ batch }) => batch?.state), partsOf(whole)]).toEqual([
    ['finished', undefined],
    [],
  ]);
  expect(await checkLedger(ledger, never)).toMatchObject({ missing: [], orphaned: 0 });
  expect(ledger.sets.find(whole.id)).toBeUndefined();
  const [, unstarted] = partsOf(half);
  if (!unstarted) throw new Error('the set has two parts');
  await startPart(unstarted, { finished: true });
  now = Date.now();
  expect(await pruneLedger(ledger, options, never)).toMatchObject({ batches: 2, trials: 2 });
});
