import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { ComparedBatches } from '../../src/comparison/comparison.ts';
import { permissions } from '../../src/contract/definition.ts';
import { Ledger } from '../../src/ledger/ledger.ts';

import { runVariants } from '../../src/service/record/setup.ts';
import { noExtras } from '../../src/suite/plan.ts';
import { testPlatform, trialRecord } from '../service/test-platform.ts';
import { openTestService } from '../service/test-service.ts';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

const cases = Array.from({ length: 12 }, (_, n) => ({ id: `case-${n}`, name: `Case ${n}`, verify: 'true' }));
const credentials = { harnessConnectionId: 'command', sandboxConnectionId: 'local' };
const suite = { id: 'suite', name: 'Suite', prompt: 'Do it.' };
/** As Offsite sends them: with the defaults of the fields that a suite leaves out. */
const sent = cases.map((one) => ({ ...one, source: { kind: 'empty' } as const, tags: [], variables: {} }));

let place: Place;
/** The batch that the platform ran. */
let platformBatch: string;
beforeAll(async () => {
  place = openPlace();
  using ledger = new Ledger(place.dataFolder, systemClock);
  await add(ledger, 'batch_same', 'passed');
  await add(ledger, 'batch_worse', 'failed');
  await add(ledger, 'batch_other', 'passed', 'another check');
  await add(ledger, 'batch_stranger', 'passed', 'true', 'stranger');
  platformBatch = await startOnPlatform();
  await add(ledger, platformBatch, 'passed', 'true', 'small', 'platform');
  addFound(ledger, 'batch_found', suite.name);
  addFound(ledger, 'batch_elsewhere', 'Another suite');
});
afterAll(() => place?.[Symbol.dispose]());

/** A finished batch of the ledger. */
async function add(
  ledger: Ledger,
  id: string,
  verdict: 'passed' | 'failed',
  verify = 'true',
  model = 'small',
  service = 'embedded',
): Promise<void> {
  const planned = cases.map((one) => ({ request: { ...one, verify }, local: noExtras }));
  const variants = [{ name: 'worker', model, credentials, profile: { files: [] } }];
  const plan = await ledger.blobs.putJson({
    version: 1,
    prompt: suite.prompt,
    plan: { suite: { id: suite.id, name: suite.name }, cases: planned, variants },
  });
  const { key } = ledger.batches.add({
    service,
    id,
    suite: suite.name,
    file: undefined,
    plan,
    runs: cases.map((one, taskIndex) => ({
      id: `run_${taskIndex}`,
      taskIndex,
      caseId: one.id,
      caseName: one.name,
      variant: 'worker',
      details: {},
    })),
  });
  const runs = ledger.batches.runs(key);
  ledger.queue.add(runs.map((run) => ({ key: run.key, setup: undefined, ordinals: [0, 1] })));
  const result = { verdict, startedAt: 0, finishedAt: 1, phases: [], modelUnmeasured: false };
  const report = { caseName: 'c', ordinal: 0, taskIndex: 0, events: [], outcome: {} };
  for (const trial of ledger.queue.ofBatch(key)) {
    await ledger.trials.finish(ledger.trials.beginAttempt(trial.key), { verdict, result, report });
  }
}

/** A batch of the ledger that somebody else planned: its variants have the service's ids. */
function addFound(ledger: Ledger, id: string, suiteName: string): void {
  const [variant] = runVariants([{ model: 'small', credentials }]);
  const { key } = ledger.batches.add({
    service: 'embedded',
    id,
    suite: suiteName,
    file: undefined,
    runs: cases.map((one, taskIndex) => ({
      id: `${id}_${taskIndex}`,
      taskIndex,
      caseId: one.id,
      caseName: one.name,
      variant: variant?.id ?? '',
      details: {},
    })),
  });
  ledger.queue.add(
    ledger.batches.runs(key).map((run) => ({ key: run.key, setup: undefined, ordinals: [0] })),
  );
}

/** A batch of the same cells that the service's platform ran, where all trials but one passed. */
async function startOnPlatform(): Promise<string> {
  const platform = openTestService(place.dataFolder, testPlatform());
  const key = platform.keyFor('Local', ...permissions);
  const request = { suite, cases: sent, variants: [{ model: 'small', credentials }], trials: 2 };
  const { id: batch, runs } = await platform.succeed('evals.start', request, key);
  for (const [index, { id }] of runs.entries()) {
    for (const ordinal of [0, 1]) {
      const verdict = index + ordinal === 0 ? 'failed' : 'passed';
      await platform.service.platform.complete(id, ordinal, trialRecord({ verdict, harnessVersion: '2.0' }));
    }
  }
  await platform.service.close();
  return batch;
}

const compare = (batch: string, ...options: string[]) =>
  offsite(place, ['compare', batch, '--baseline', ...options]);

test('a batch is compared with the baseline of its cells, which reported results never enter', async () => {
  const { stdout, stderr, exitCode } = await compare('same', '--json');
  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  const { comparisons, variantsOnlyB }: ComparedBatches = JSON.parse(stdout);
  expect(variantsOnlyB).toEqual([]);
  expect(comparisons).toMatchObject([
    {
      a: {
        variant: 'worker',
        batches: [expect.stringMatching(/^batch_/)],
        baseline: { runs: 12, harnessVersions: ['2.0'], profileVersions: [] },
        passRate: { cases: 12, passed: 23, failed: 1 },
      },
      b: { batches: ['batch_same'], passRate: { cases: 12, passed: 24, failed: 0 } },
      difference: { cases: 12, finding: 'noise' },
      redefined: [],
    },
  ]);
});

test('a batch that is worse than the baseline is a regression', async () => {
  const { stdout, stderr, exitCode } = await compare('worse', '--fail-on-regression');
  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/^A {2}baseline · worker, 12 runs, harness 2\.0: 96 %, 23 of 24 trials passed$/m);
  expect(stdout).toMatch(/^B is worse by 9\d points/m);
  expect(stderr).toContain('regression: worker is worse than in the baseline by more than noise');
});

test('cases whose definition is another one are named, and not compared', async () => {
  const { stdout } = await compare('other', '--json');
  const { comparisons }: ComparedBatches = JSON.parse(stdout);
  expect(comparisons[0]?.redefined).toEqual(cases.map(({ id }) => id));
  expect(comparisons[0]?.difference).toMatchObject({ cases: 0, finding: 'nothing-in-common' });
});

test('a batch without a baseline is refused, with what makes one', async () => {
  const { stdout, stderr, exitCode } = await compare('stranger');
  expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 });
  expect(stderr).toMatch(
    /^error: the embedded service has no baseline for these cases and variants\n.*runs itself/,
  );
});

test('a batch that somebody else planned is compared with the baseline of its own suite only', async () => {
  const { stdout } = await compare('found', '--json');
  const { comparisons }: ComparedBatches = JSON.parse(stdout);
  expect(comparisons).toMatchObject([{ a: { baseline: { runs: 12 } }, b: { unfinished: 12 } }]);
  const { stderr, exitCode } = await compare('elsewhere');
  expect(exitCode).toBe(2);
  expect(stderr).toContain('has no baseline for these cases and variants');
});

test('a batch of the platform is not compared with itself', async () => {
  const { stdout, stderr, exitCode } = await compare(platformBatch);
  expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 });
  expect(stderr).toContain(`the service has no baseline for ${platformBatch}, besides itself`);
});

test('two batches and --baseline are refused', async () => {
  const { stderr, exitCode } = await compare('same', 'worse');
  expect(exitCode).toBe(2);
  expect(stderr).toContain('--baseline compares one batch, but two are named');
});

test.each([
  [JSON.stringify({ _tag: 'NotFound', message: 'no such operation' }), 'application/json'],
  ['<html>Not Found</html>', 'text/html'],
])('a service that has no baselines is told clearly, when it answers %s', async (body, type) => {
  const server = createServer((_, response) => {
    response.writeHead(404, { 'content-type': type }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { OFFSITE_URL: url, OFFSITE_API_KEY: 'a-key-of-somebody' };
    const { stderr, exitCode } = await offsite(place, ['compare', 'same', '--baseline'], { env });
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/^error: \S+ has no baselines\n.*Compare with a batch instead/);
  } finally {
    server.close();
  }
});
