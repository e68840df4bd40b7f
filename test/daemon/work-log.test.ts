import { expect, test } from 'vitest';
import type { WorkEvent } from '../../src/agent/worker/worker-parts.ts';
import { daemonLog } from '../../src/cli/daemon/log.ts';
import { type WorkLog, workLog } from '../../src/cli/daemon/work-log.ts';
import type { StoredTrial } from '../../src/ledger/trial-rows.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { Output } from '../../src/text/output.ts';
import { handClock } from '../agent/test-clock.ts';
import { harmIn, hostileName } from '../hostile/hostile-text.ts';

function open(queued = 0) {
  const clock = handClock();
  const logged: Record<string, unknown>[] = [];
  let sent = '';
  const output = new Output({
    write(line) {
      sent += line;
      logged.push(JSON.parse(line));
    },
  });
  const log = daemonLog(output, () => work.logged());
  const work: WorkLog = workLog(log, { clock, queued: () => queued });
  const seconds = async (count: number) => {
    for (let second = 0; second < count; second++) await clock.pass(1_000);
  };
  return { log, work, logged, seconds, sent: () => sent };
}

const trial = (key: number) =>
  ({ key, caseId: 'a', runId: 'run_1', batchId: 'batch_1', ordinal: key }) as unknown as StoredTrial;
const building = (what: string, kind: 'running' | 'built' = 'running'): WorkEvent => ({
  kind: 'build',
  build: { id: what, what, state: { kind } },
});

test('the log of the daemon says what goes on each 15 s while it would be silent', async () => {
  const { log, work, logged, seconds } = open();
  using _open = work;
  work.observe(building('prepare of a'));
  work.observe({ kind: 'phase', trial: trial(1), phase: 'harness' });
  work.observe({ kind: 'waiting', for: 'the model small', reason: '503' });
  await seconds(15);
  expect(logged).toMatchObject([
    {
      msg: 'at work',
      finished: { passed: 0, failed: 0, void: 0 },
      running: { harness: 1 },
      longest: { case: 'a', trial: 'run_1 #1', ms: 15_000 },
      builds: 1,
      building: [{ what: 'prepare of a', state: 'running', ms: 15_000 }],
      down: [{ of: 'the model small', reason: '503', ms: 15_000 }],
    },
  ]);
  await seconds(10);
  log.info('something else');
  await seconds(14);
  expect(logged).toHaveLength(2);
  await seconds(1);
  expect(logged).toHaveLength(3);
});

test('it is silent while nothing is in progress, however long', async () => {
  const { work, logged, seconds } = open();
  using _open = work;
  await seconds(60);
  work.observe(building('prepare of a'));
  work.observe(building('prepare of a', 'built'));
  work.observe({ kind: 'phase', trial: trial(1), phase: 'verify' });
  const result = { verdict: 'passed', startedAt: 0, finishedAt: 1 } as TrialRecord;
  work.observe({ kind: 'finished', trial: trial(1), result });
  work.observe({ kind: 'phase', trial: trial(2), phase: 'verify' });
  work.observe({ kind: 'put-back', trial: trial(2), error: new Error('full'), isNews: true });
  await seconds(60);
  expect(logged).toEqual([]);
});

test('a model that is down is said while trials wait to run, and not when no trial needs it', async () => {
  const down: WorkEvent = { kind: 'waiting', for: 'the model small', reason: '503' };
  const idle = open();
  using _idle = idle.work;
  idle.work.observe(down);
  await idle.seconds(60);
  expect(idle.logged).toEqual([]);
  const busy = open(2);
  using _busy = busy.work;
  busy.work.observe(down);
  await busy.seconds(15);
  expect(busy.logged).toMatchObject([{ msg: 'at work', running: {}, down: [{ of: 'the model small' }] }]);
});

test('its lines are safe whatever cases and profiles are called', async () => {
  const { work, sent, seconds } = open();
  using _open = work;
  work.observe(building(hostileName));
  await seconds(15);
  expect(sent()).toContain('at work');
  expect(harmIn(sent())).toEqual([]);
});
