import { expect, test } from 'vitest';
import { crashedTooOften } from '../../src/agent/finish-trial.ts';
import { systemClock } from '../../src/base/clock.ts';
import { defects } from '../../src/bounds/anyone.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { eachFolder, folder } from '../each-folder.ts';
import { queueTrial } from './queue-trial.ts';

eachFolder();

function openBatch(ledger: Ledger) {
  const run = { id: 'run', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' };
  const batch = ledger.batches.add({
    service: 's',
    id: 'batch',
    suite: 'S',
    file: undefined,
    lock: 'l',
    runs: [run],
  });
  return { batch: batch.key, one: queueTrial(ledger, batch.key, 0), other: queueTrial(ledger, batch.key, 1) };
}

test('an error that escapes counts for the attempt it is of, and for all that run where that is not known', async () => {
  using ledger = new Ledger(folder, systemClock);
  const { one, other } = openBatch(ledger);
  const attempts = [one, other].map((trial) => ledger.trials.beginAttempt(trial).key);
  const over = Promise.withResolvers<void>();
  const [first = 0, second = 0] = attempts;
  const failing = async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await new Promise<void>((resolve) =>
      setImmediate(() => {
        ledger.crashes.escaped('file-1');
        resolve();
      }),
    );
    await over.promise;
  };
  const working = [ledger.crashes.within(first, failing), ledger.crashes.within(second, () => over.promise)];
  await expect.poll(() => ledger.crashes.of(one).errors).toBe(1);
  expect(ledger.crashes.of(other)).toMatchObject({ errors: 0, deaths: 0 });
  ledger.crashes.escaped('file-2');
  expect([one, other].map((trial) => ledger.crashes.of(trial))).toEqual([
    { errors: 1, deaths: 0, detail: 'file-1' },
    { errors: 1, deaths: 0, detail: 'file-2' },
  ]);
  over.resolve();
  await Promise.all(working);
});

test('deaths without a word are counted by who goes on, and many of them end a trial', () => {
  let trial = 0;
  let batch = 0;
  for (let death = 0; death < defects.count.deaths; death += 1) {
    using ledger = new Ledger(folder, systemClock);
    if (death === 0) ({ one: trial, batch } = openBatch(ledger));
    expect(crashedTooOften(ledger.crashes.of(trial), 0)).toBeUndefined();
    ledger.trials.beginAttempt(trial);
    ledger.queue.interrupt({ service: 's', lock: 'l', batch });
  }
  using ledger = new Ledger(folder, systemClock);
  expect(ledger.crashes.of(trial)).toMatchObject({ errors: 0, deaths: defects.count.deaths });
  expect(crashedTooOften(ledger.crashes.of(trial), 0)).toMatchObject({
    verdict: 'void',
    cause: { kind: 'infrastructure', message: expect.stringContaining('died 5 times') },
  });
});
