import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runners } from '../../runners/index.ts';
import { type AttemptEvent, finishTrial } from '../../src/agent/finish-trial.ts';
import { systemClock } from '../../src/clock.ts';
import { connectEngine } from '../../src/engine/connect.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { Ledger, type TrialKey } from '../../src/ledger/ledger.ts';
import { OffsiteError } from '../../src/offsite-error.ts';
import { Sandboxes } from '../../src/trial/sandboxes.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';
import { specOf } from '../trial/trial-bench.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-agent-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

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

async function finish(spec: TrialSpec, failures: number) {
  await using engine = await connectEngine({ instance: `test-agent-${process.pid}` });
  using ledger = new Ledger(folder, systemClock);
  const run = { id: 'run', taskIndex: 0, caseId: 'a', caseName: 'A', variant: 'v', memory: {} };
  const runs = ledger.addBatch({ service: 's', id: 'batch', suite: 'S', file: undefined, runs: [run] });
  const key: TrialKey = ledger.addTrial(runs.get('run') ?? 0, 0);
  const events: AttemptEvent[] = [];
  await using sandboxes = new Sandboxes(failing(engine, failures), undefined);
  const parts = {
    sandboxes,
    runners,
    clock: systemClock,
    ledger,
  };
  const never = new AbortController().signal;
  const result = await finishTrial(spec, key, parts, never, (event) => events.push(event));
  return { result, report: ledger.outbox.body(key), told: events.filter(({ kind }) => kind !== 'phase') };
}

test('a trial whose infrastructure failed is run once more, and its second result counts', async () => {
  const { result, report, told } = await finish(specOf('true', { verify: 'true' }), 1);
  expect(result.verdict).toBe('passed');
  expect(told).toMatchObject([
    { kind: 'retried', attempt: 1, message: 'the engine is out of order' },
    { kind: 'finished' },
  ]);
  expect(report.events[0]).toMatchObject({ _tag: 'Started', sessionId: 'run/0/2' });
});

test('a trial whose infrastructure keeps failing is void, and reported as void rather than failed', async () => {
  const { result, report, told } = await finish(specOf('true', { verify: 'true' }), 9);
  expect(result).toMatchObject({ verdict: 'void', cause: { kind: 'infrastructure', phase: 'sandbox' } });
  expect(told).toMatchObject([{ kind: 'retried' }, { kind: 'finished' }]);
  expect(report.outcome.passed).toBeUndefined();
  expect(report.outcome.voidFields).toContain('passed');
});

test('an agent that fails, and a prepare that fails, are not run again', async () => {
  const failed = await finish(specOf('exit 1', { verify: 'false' }), 0);
  expect(failed.told).toMatchObject([{ kind: 'finished', result: { verdict: 'failed' } }]);
  rmSync(folder, { recursive: true });
  const unprepared = await finish(specOf('true', { prepare: 'exit 1', verify: 'true' }), 0);
  expect(unprepared.told).toMatchObject([
    { kind: 'finished', result: { verdict: 'void', cause: { kind: 'task' } } },
  ]);
});
