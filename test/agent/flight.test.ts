import { expect, test } from 'vitest';
import { Flight, type WorkedTrial } from '../../src/agent/worker/flight.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { eachLedger, ledger } from '../ledger/each-ledger.ts';

eachLedger();

const scope = { service: 's', lock: 'l' };

/** A queue with a run of so many trials for each name; a run's variant and model have its name. */
function queued(runs: Record<string, number>) {
  const { key } = ledger.batches.add({
    ...scope,
    id: 'batch',
    suite: 'S',
    file: undefined,
    runs: Object.keys(runs).map((id, variantIndex) => {
      return { id, taskIndex: 0, caseId: 'a', caseName: 'A', variant: id, variantIndex };
    }),
  });
  const ordinals = (count = 0) => Array.from({ length: count }, (_, ordinal) => ordinal);
  ledger.queue.add(
    ledger.batches
      .runs(key)
      .map((run) => ({ key: run.key, setup: undefined, ordinals: ordinals(runs[run.id]) })),
  );
}

const config = (maxParallel?: number) =>
  ModelConfig.parse({
    wire: 'openai-chat',
    baseUrl: 'http://127.0.0.1:1',
    ...(maxParallel && { maxParallel }),
  });

/** Takes trials as the worker does, at a concurrency of 2. Returns the runs of those that joined. */
function fill(flight: Flight, limits: Record<string, number> = {}): string[] {
  const joined: string[] = [];
  for (;;) {
    const room = flight.room(2);
    const next = room > 0 ? ledger.queue.next(scope, room, flight.leftOut()) : [];
    if (next.length === 0) return joined;
    for (const trial of next) {
      const spec = { model: trial.runId, modelConfig: config(limits[trial.runId]) };
      if (!flight.hasRoomFor(trial, spec)) continue;
      flight.add({ trial, spec, state: 'looking' } as WorkedTrial);
      joined.push(trial.runId);
    }
  }
}

test('as many trials join as run at a time, and as many again', () => {
  queued({ one: 3, two: 100 });
  expect(fill(new Flight(() => false))).toEqual(['one', 'one', 'one', 'two']);
});

test('trials of a model that takes one request at a time hold up no other model, however many there are', () => {
  queued({ busy: 100, free: 100 });
  const flight = new Flight(() => false);
  expect(fill(flight, { busy: 1 })).toEqual(['busy', 'busy', 'free', 'free']);
  for (const { trial } of flight.trials.filter(({ spec }) => spec.model === 'free')) flight.remove(trial.key);
  expect(fill(flight, { busy: 1 })).toEqual(['free', 'free']);
});

test('while a model is down one of its trials waits for it, and the others leave their places', () => {
  queued({ down: 100, up: 100 });
  let isDown = false;
  const flight = new Flight((model) => isDown && model === 'down');
  fill(flight);
  isDown = true;
  expect(fill(flight)).toEqual(['up', 'up', 'up', 'up']);
  const [first, ...others] = flight.trials.filter(({ spec }) => spec.model === 'down');
  for (const { trial } of others) flight.remove(trial.key);
  expect(fill(flight)).toEqual([]);
  // With nobody left to find out that it works again, another one joins.
  flight.remove(first?.trial.key ?? 0);
  flight.remove(flight.trials[0]?.trial.key ?? 0);
  expect(fill(flight)).toEqual(['down', 'up']);
});

test('a model that was given up is not asked for again', () => {
  queued({ gone: 2, up: 1 });
  const flight = new Flight(() => false);
  flight.giveUp('gone', new Error('too long'));
  expect(fill(flight)).toEqual(['up']);
  expect(flight.givenUp).toHaveLength(1);
});

test('while the environment of a run is built, trials of other runs join', () => {
  queued({ building: 100, built: 100 });
  const flight = new Flight(() => false);
  fill(flight);
  flight.markBuilding('building');
  expect(fill(flight)).toEqual(['built', 'built', 'built', 'built']);
});
