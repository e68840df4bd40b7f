import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { ModelAccount } from '../../src/gateway/gateway.ts';
import { engine, sharedEngine } from '../engine/shared-engine.ts';
import { specOf } from '../trial/trial-bench.ts';
import { admissionFor, oneEngine } from './attempt-bench.ts';
import { handClock } from './test-clock.ts';

const never = new AbortController().signal;
sharedEngine();

async function secondTrial(modelFailure: string | undefined) {
  const clock = systemClock;
  using engines = oneEngine(engine, { clock, patienceMs: 0 });
  using one = await engines.seat(specOf(''), never);
  using other = await engines.seat(specOf(''), never);
  const admission = admissionFor(2, clock);
  const models: ModelAccount = {
    exchanges: [],
    connections: [],
    usage: [],
    modelMs: 0,
    failure: undefined,
    agent: { acted: true, modelFailure },
  };
  using first = await one.enter(admission, never);
  await first.failed({ kind: 'model', phase: 'harness', message: '529 overloaded' }, models, false, never);
  using second = await other.enter(admission, never);
  return second;
}

test('trials wait for a model that the gateway saw fail, and not for one that only a harness says is down', async () => {
  await expect(secondTrial('big: answered 529')).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' });
  expect(await secondTrial(undefined)).toBeDefined();
});

test('a try of a model does not count if it reached nobody, unless its agent was answered', async () => {
  const clock = handClock();
  using engines = oneEngine(engine, { clock });
  const admission = admissionFor(1, clock);
  using seat = await engines.seat(specOf(''), never);
  const counts = async (acted: boolean) => {
    const entering = seat.enter(admission, never);
    await clock.pass(60_000);
    using permit = await entering;
    const cause = { kind: 'model', phase: 'harness', message: 'nothing listens' } as const;
    const agent = { acted, modelFailure: 'nothing listens' };
    return !(await permit.failed(
      cause,
      { exchanges: [], connections: [], usage: [], modelMs: 0, agent },
      true,
      never,
    ));
  };
  // The first finds a model down that worked.
  expect([await counts(false), await counts(false), await counts(true)]).toEqual([true, false, true]);
});

test('a single engine that works again is not asked what it can run, because all trials stay there', async () => {
  let isDown = true;
  const findImage: Engine['findImage'] = async () => {
    if (isDown) throw new Error('nobody there');
    return undefined;
  };
  let asked = 0;
  const fits = async () => {
    asked++;
    return true;
  };
  const clock = handClock();
  using engines = oneEngine({ ...engine, findImage }, { clock, fits });
  using _seat = await engines.seat(specOf(''), never);
  await engines.suspect('a trial broke', never);
  expect(engines.areAllDown).toBe(true);
  isDown = false;
  await clock.pass(60_000);
  expect([engines.areAllDown, asked]).toEqual([false, 0]);
});
