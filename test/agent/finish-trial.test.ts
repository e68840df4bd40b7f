import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Admission } from '../../src/agent/admission.ts';
import { NotClaimed, ServiceClaims } from '../../src/agent/claims.ts';
import { type AttemptParts, finishTrial } from '../../src/agent/finish-trial.ts';
import type { AttemptEvent } from '../../src/agent/worker/worker-parts.ts';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { createClient } from '../../src/client/client.ts';
import type { StartResponse } from '../../src/contract/definition.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { openGateway } from '../../src/gateway/open-gateway.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { profileOf } from '../../src/suite/plan.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { openFlakyService } from '../cli/flaky-service.ts';
import { openPlace } from '../cli/place.ts';
import { eachFolder, folder } from '../each-folder.ts';
import { engine, sharedEngine } from '../engine/shared-engine.ts';
import {
  chatAnswer,
  json,
  type TestUpstream,
  testUpstream,
  testUpstreamAt,
} from '../gateway/test-upstream.ts';
import { queueTrial } from '../ledger/queue-trial.ts';
import { startRequest } from '../service/test-service.ts';
import { specOf } from '../trial/trial-bench.ts';
import { openAttemptBench } from './attempt-bench.ts';
import { handClock } from './test-clock.ts';

eachFolder();
sharedEngine();

/** Waits between attempts pass at once; deadlines are real. */
const hasty: Clock = {
  ...systemClock,
  sleep: (ms, signal) => (ms < 5_000 ? Promise.resolve() : systemClock.sleep(ms, signal)),
};

function unused(): never {
  throw new Error('a trial without a model needs no gateway');
}

const noGateway = {
  open: unused,
  limitOf: () => undefined,
  isAbsent: () => false,
  isUnreachable: () => false,
  limits: () => [],
  [Symbol.asyncDispose]: unused,
};

/** The real engine, which refuses to create the first `failures` containers that are asked of it. */
function failing(engine: Engine, failures: number): Engine {
  let left = failures;
  return {
    ...engine,
    async createContainer(spec, signal) {
      if (left-- > 0) {
        throw new OffsiteError('the engine is out of order', { code: 'GONE', kind: 'infrastructure' });
      }
      return engine.createContainer(spec, signal);
    },
  };
}

/** The real engine, which does not answer at first: so many probes find nobody there. */
function absent(engine: Engine, probes: number): Engine {
  let left = probes;
  const away = () => {
    throw new OffsiteError('no engine answers', { code: 'ENGINE_CONNECTION', kind: 'infrastructure' });
  };
  return {
    ...engine,
    createContainer: async (spec, signal) => (left > 0 ? away() : engine.createContainer(spec, signal)),
    findImage: async (name, signal) => (left-- > 0 ? away() : engine.findImage(name, signal)),
  };
}

interface Circumstances extends Pick<AttemptParts, 'claim'> {
  gateway?: AttemptParts['gateway'];
  attempts?: number;
  clock?: Clock;
  breaking?: typeof failing;
  /** Sees each event when it happens. */
  during?: (event: AttemptEvent, admission: Admission) => void;
}

async function finish(
  spec: TrialSpec,
  failures: number,
  { attempts = 3, breaking = failing, claim, clock = hasty, during, gateway = noGateway }: Circumstances = {},
) {
  using ledger = new Ledger(folder, systemClock);
  const run = { id: 'run', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v' };
  const batch = ledger.batches.add({ service: 's', id: 'batch', suite: 'S', file: undefined, runs: [run] });
  const key = queueTrial(ledger, batch.key, 0);
  const events: AttemptEvent[] = [];
  await using bench = openAttemptBench(breaking(engine, failures), { ledger, gateway, clock: hasty });
  const { engines, admission } = bench;
  using seat = await engines.seat(spec, AbortSignal.abort());
  const parts = { ...bench.parts, clock, seat, attempts, claim };
  const { signal } = new AbortController();
  const signals = { signal, admitted: signal };
  const observe = (event: AttemptEvent) => {
    events.push(event);
    during?.(event, admission);
  };
  const finished = finishTrial(spec, key, parts, signals, observe);
  await finished.catch(() => undefined);
  const kept = ledger.records
    .all('SELECT number, ending, cause, result FROM attempts ORDER BY number')
    .map(({ number, ending, cause, result }) => ({ number, ending, cause, hasResult: result !== null }));
  const result = await finished.catch((error: unknown) => {
    throw Object.assign(error as Error, { kept, pending: ledger.outbox.pending() });
  });
  return {
    kept,
    result,
    report: ledger.outbox.body(key),
    observed: events.filter(({ kind }) => kind !== 'phase'),
  };
}

test('a trial whose infrastructure failed is run once more, its second result counts, and both are kept', async () => {
  // The sandbox, and the one in which verify would run.
  const { result, report, observed, kept } = await finish(specOf('true', { verify: 'true' }), 2);
  expect(result.verdict).toBe('passed');
  expect(observed).toMatchObject([
    { kind: 'retried', attempt: 1, message: 'the engine is out of order' },
    { kind: 'finished' },
  ]);
  expect(report.events[0]).toMatchObject({ _tag: 'Started', sessionId: 'run/0/2' });
  expect(kept).toEqual([
    { number: 1, ending: 'void', cause: expect.stringContaining('"infrastructure"'), hasResult: true },
    { number: 2, ending: 'passed', cause: null, hasResult: false },
  ]);
});

test('nobody is blamed for a grading sandbox that the engine refuses once', async () => {
  const { result } = await finish(specOf('true', { verify: 'true' }), 1);
  expect(result, JSON.stringify(result.cause)).toMatchObject({ verdict: 'passed' });
});

test('while the whole engine is down trials wait for it, and no attempt counts', async () => {
  const { result, kept } = await finish(specOf('true', { verify: 'true' }), 5, {
    attempts: 1,
    breaking: absent,
  });
  expect(result.verdict).toBe('passed');
  expect(kept.map(({ ending }) => ending)).toEqual(['outage', 'passed']);
});

test('a trial whose harness ended before its model answered is run again, and nobody is blamed', async () => {
  await using server = await testUpstream(() => undefined);
  const modelConfig = ModelConfig.parse({ wire: 'openai-chat', baseUrl: server.url });
  await using gateway = openGateway({
    models: { mute: modelConfig },
    env: {},
    clock: systemClock,
    scripted: () => {
      throw new Error('no scripted model here');
    },
  });
  // It ends a second after its request was sent, however long that takes.
  const isSent = 'grep -qs "Send data" /tmp/trace';
  const asks = 'eval "$ASK --trace-ascii /tmp/trace" > /dev/null 2>&1 &';
  const run = `${asks} until ${isSent}; do sleep 0.05; done; sleep 1; kill $!; exit 1`;
  const profile = profileOf({ name: 'test', run });
  const spec = specOf('', { model: 'mute', modelConfig, harness: 'fixture-cli', profile, verify: 'false' });
  const { result, observed } = await finish(spec, 0, { attempts: 2, gateway });
  expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'unknown', phase: 'harness' } });
  expect(observed).toMatchObject([{ kind: 'retried' }, { kind: 'finished' }]);
});

test('while a model that has worked cannot be reached, only the attempt that found that counts', async () => {
  const done = json(200, chatAnswer);
  const first = await testUpstream(done);
  let waited = 0;
  const modelConfig = ModelConfig.parse({ wire: 'openai-chat', baseUrl: first.url });
  await using gateway = openGateway({
    models: { away: modelConfig },
    env: {},
    // Waits between the attempts of a request pass at once, and count.
    clock: {
      ...systemClock,
      now: () => systemClock.now() + waited,
      async sleep(ms) {
        waited += ms;
      },
    },
    scripted: () => {
      throw new Error('no scripted model here');
    },
  });
  const spec = specOf('', { model: 'away', modelConfig, harness: 'bash', verify: 'true' });
  expect((await finish(spec, 0, { gateway })).result.verdict).toBe('passed');
  rmSync(folder, { recursive: true });
  await first[Symbol.asyncDispose]();
  let again: TestUpstream | undefined;
  const { kept, result } = await finish(spec, 0, {
    gateway,
    attempts: 2,
    async during({ kind, ...event }) {
      if (kind === 'retried' && 'attempt' in event && event.attempt === 2)
        again = await testUpstreamAt(first.port, done);
    },
  });
  await again?.[Symbol.asyncDispose]();
  expect(kept.map(({ ending }) => ending)).toEqual(['void', 'outage', 'passed']);
  expect(result.verdict).toBe('passed');
});

test('a trial of a model that nothing listens for is void after one attempt', async () => {
  const server = await testUpstream(() => undefined);
  await server[Symbol.asyncDispose]();
  const notes: string[] = [];
  // The waits between two looks pass at once, and count.
  let waited = 0;
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + waited,
    async sleep(ms, signal) {
      if (ms !== 1_000) return await systemClock.sleep(ms, signal);
      waited += ms;
    },
  };
  const modelConfig = ModelConfig.parse({ wire: 'openai-chat', baseUrl: server.url });
  await using gateway = openGateway({
    models: { gone: modelConfig },
    env: {},
    clock,
    note: (message) => notes.push(message),
    scripted: () => {
      throw new Error('no scripted model here');
    },
  });
  const spec = specOf('', { model: 'gone', modelConfig, harness: 'bash', verify: 'false' });
  const { result, observed } = await finish(spec, 0, { gateway, clock });
  expect(observed).toMatchObject([{ kind: 'finished' }]);
  expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'model', phase: 'harness' } });
  const { origin } = new URL(server.url);
  expect(result?.cause?.message).toContain(`nothing listens at ${origin}`);
  expect(result?.cause?.message).toContain('Check that it is running there, and its baseUrl.');
  expect(notes).toEqual([
    expect.stringMatching(
      `the model gone: nothing listens at ${origin}.*; waiting up to 20.0 s, in case it is starting`,
    ),
  ]);
});

test('a trial whose infrastructure keeps failing is void, and reported as void rather than failed', async () => {
  const { result, report, observed } = await finish(specOf('true', { verify: 'true' }), 9);
  expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'infrastructure', phase: 'sandbox' } });
  expect(observed).toMatchObject([{ kind: 'retried' }, { kind: 'retried' }, { kind: 'finished' }]);
  expect(report.outcome.passed).toBeUndefined();
  expect(report.outcome.voidFields).toContain('passed');
});

test('an agent that fails, and a prepare that fails, are not run again', async () => {
  const failed = await finish(specOf('exit 1', { verify: 'false' }), 0);
  expect(failed.observed).toMatchObject([{ kind: 'finished', result: { verdict: 'failed' } }]);
  rmSync(folder, { recursive: true });
  const unprepared = await finish(specOf('true', { prepare: 'exit 1', verify: 'true' }), 0);
  expect(unprepared.observed).toMatchObject([
    { kind: 'finished', result: { verdict: 'void', cause: { kind: 'task' } } },
  ]);
});

test.for([
  ['a verdict that waits for the disk holds up no other trial', 'true', 'verify', 0],
  ['one that is void does, because it may stop the next ones', 'exit 1', 'sandbox', 1],
] as const)('%s', async ([, prepare, phase, held]) => {
  const blobs = join(folder, 'blobs');
  const permits: number[] = [];
  const { observed } = await finish(specOf('true', { prepare, verify: 'true' }), 0, {
    during(event, { trials }) {
      if (event.kind === 'phase' && event.phase === phase) rmSync(blobs, { recursive: true, force: true });
      if (event.kind !== 'unstored') return;
      permits.push(trials.holders.length);
      mkdirSync(blobs);
    },
  });
  expect(observed.map(({ kind }) => kind)).toEqual(['unstored', 'finished']);
  expect(permits).toEqual([held]);
});

test('a finished result of a trial that another agent has got meanwhile is kept, and not reported', async () => {
  using place = openPlace();
  await using service = await openFlakyService(place);
  const { runs } = (await service.ask('evals.start', startRequest())) as StartResponse;
  const trial = { runId: runs[0]?.id ?? '', ordinal: 0, origin: 'found' } as const;
  const { OFFSITE_URL: url, OFFSITE_API_KEY: apiKey } = service.env;
  await using client = createClient({ url, apiKey, clock: systemClock });
  const clock = handClock();
  const claims = new ServiceClaims({ client, agent: 'own', clock, leaseMs: 60_000 });
  const claim = (agent: string, seconds: number) =>
    service.ask('evals.claimTrial', { id: trial.runId, ordinal: 0, agent, seconds });
  let slept: Promise<unknown> | undefined;
  const failure = await finish(specOf('true', { verify: 'true' }), 0, {
    claim: (signal) => claims.acquire(trial, signal),
    during(event) {
      if (event.kind !== 'phase' || event.phase !== 'harness') return;
      // The machine sleeps for longer than its lease, and its timers stand still.
      clock.set(clock.now() + 60_000);
      slept = claim('own', 0).then(() => claim('another', 60));
    },
  }).then(
    () => undefined,
    (error) => error,
  );
  await slept;
  expect(failure).toBeInstanceOf(NotClaimed);
  expect(failure).toMatchObject({ why: { kind: 'held' }, pending: [] });
  expect(failure.kept).toEqual([
    { number: 1, ending: 'lost', cause: expect.stringContaining('another'), hasResult: true },
  ]);
});
