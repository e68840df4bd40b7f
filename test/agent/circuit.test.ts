import { describe, expect, test } from 'vitest';
import { Circuit, type CircuitEvent } from '../../src/agent/circuits.ts';
import { handClock, settled } from './test-clock.ts';

const never = new AbortController().signal;

function open(probe?: () => Promise<void>, patienceMs = 1e9) {
  const clock = handClock();
  const events: CircuitEvent[] = [];
  const circuit = new Circuit({
    name: 'the engine',
    clock,
    random: () => 0.5,
    probe,
    patienceMs,
    observe: (event) => events.push(event),
  });
  let through = 0;
  const pass = () =>
    circuit.pass(never).then((passage) => {
      through++;
      return passage;
    });
  return { clock, circuit, events, pass, through: () => through };
}

describe('an engine that is down', () => {
  test('makes trials wait until a probe finds it back, told once', async () => {
    let down = true;
    const { clock, circuit, events, pass, through } = open(async () => {
      if (down) throw new Error('nobody there');
    });
    expect(await circuit.suspect('a trial broke', never)).toBe(true);
    for (let trial = 0; trial < 3; trial++) pass();
    await settled();
    for (let minute = 0; minute < 5; minute++) await clock.pass(60_000);
    expect(through()).toBe(0);
    down = false;
    await clock.pass(61_000);
    expect(through()).toBe(3);
    expect(events.map(({ kind }) => kind)).toEqual(['waiting', 'resumed']);
  });

  test('is not suspected where a probe answers: the trial alone was broken', async () => {
    const { circuit, pass, through } = open(async () => undefined);
    expect(await circuit.suspect('a trial broke', never)).toBe(false);
    await pass();
    expect(through()).toBe(1);
  });

  test('is asked with growing pauses, never in a busy loop', async () => {
    let probes = 0;
    const { clock, circuit, pass } = open(async () => {
      probes++;
      throw new Error('nobody there');
    });
    await circuit.suspect('a trial broke', never);
    pass();
    await settled();
    const pauses: number[] = [];
    for (let probe = 0; probe < 5; probe++) {
      const [wait = 0] = clock.waits;
      pauses.push(wait);
      await clock.pass(wait);
    }
    expect(probes).toBe(6);
    expect(pauses).toEqual([1_250, 2_250, 4_250, 8_250, 16_250]);
  });

  test('is given up after a long time, with what was wrong and what to do', async () => {
    const { clock, circuit } = open(async () => {
      throw new Error('nobody there');
    }, 20_000);
    await circuit.suspect('a trial broke', never);
    const passing = circuit.pass(never).catch((error) => error);
    await settled();
    for (let wait = 0; wait < 10; wait++) await clock.pass(60_000);
    expect(await passing).toMatchObject({
      code: 'CIRCUIT_OPEN',
      message: expect.stringContaining('nobody there'),
    });
  });

  test('holds up nobody who is told to stop', async () => {
    const { circuit } = open(async () => {
      throw new Error('nobody there');
    });
    await circuit.suspect('a trial broke', never);
    const stop = new AbortController();
    const passing = [circuit.pass(stop.signal), circuit.pass(stop.signal)];
    stop.abort(new Error('stop'));
    for (const one of passing) await expect(one).rejects.toThrow('stop');
  });
});

describe('a model that is down', () => {
  test('is tried by one trial at a time, and lets all through when that one succeeds', async () => {
    const { clock, pass, through } = open();
    (await pass()).failed('503');
    const second = pass();
    pass();
    pass();
    await clock.pass(120_000);
    expect(through()).toBe(2);
    (await second).worked();
    await settled();
    expect(through()).toBe(4);
  });

  test('lets the next trial try when the first one came to no opinion', async () => {
    const { clock, pass, through } = open();
    (await pass()).failed('503');
    const second = pass();
    pass();
    await clock.pass(120_000);
    (await second)[Symbol.dispose]();
    await settled();
    await clock.pass(120_000);
    expect(through()).toBe(3);
  });

  test('uses up patience by waits and by tries that nobody answered, not by the time that a trial works', async () => {
    const { clock, circuit, pass } = open(undefined, 600_000);
    (await pass()).failed('503');
    const answered = pass();
    await clock.pass(10_000);
    const working = await answered;
    await clock.pass(3_600_000);
    working[Symbol.dispose]();
    expect(circuit.gaveUp).toBeUndefined();
    const unanswered = pass();
    await clock.pass(60_000);
    const waiting = await unanswered;
    await clock.pass(600_000);
    waiting.failed('nothing listens', true);
    expect(circuit.gaveUp).toBeDefined();
  });

  test('is not given up while the last try of it runs', async () => {
    const { clock, circuit, pass, through } = open(undefined, 1_000);
    (await pass()).failed('503');
    const last = pass();
    await clock.pass(60_000);
    const newcomer = pass().then(
      () => 'passed',
      ({ code }) => code,
    );
    await settled();
    (await last).worked();
    expect(await newcomer).toBe('passed');
    expect(through()).toBe(3);
    (await pass()).failed('503');
    const failing = pass();
    await clock.pass(60_000);
    const others = [pass(), pass()].map((one) => one.catch(({ code }) => code));
    const passage = await failing;
    passage.failed('503');
    passage[Symbol.dispose]();
    expect(await Promise.all(others)).toEqual(['CIRCUIT_OPEN', 'CIRCUIT_OPEN']);
    expect(circuit.gaveUp).toBeDefined();
  });
});
