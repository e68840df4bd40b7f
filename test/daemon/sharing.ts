import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { systemClock } from '../../src/base/clock.ts';
import type { StartResponse } from '../../src/contract/definition.ts';
import type { RunsResponse } from '../../src/contract/record.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import type { FlakyService } from '../cli/flaky-service.ts';
import { type Running, start } from '../cli/offsite.ts';
import type { Place } from '../cli/place.ts';

export interface Sharing {
  /** One run each. */
  cases: number;
  /** Of each run. */
  trials: number;
  /** SIGKILLs, spread over the work and over the daemons. A killed daemon is started again at once. */
  kills: number;
  /** How long a claim holds without being renewed: `3s`. */
  lease: string;
  concurrency: number;
  /** Milliseconds; only for hangs. */
  timeoutMs: number;
}

export interface Shared {
  kills: number;
  /** Trials that the service has recorded. */
  recorded: number;
  /** Trials that each daemon ran to the end, by its ledger. */
  finished: number[];
  /** Trials that were run to the end more than once. */
  twice: number;
  /** Attempts that ended before their trial did: killed, or lost to the other daemon. */
  invalid: number;
}

const names = ['one', 'other'];

/** Two daemons with data folders of their own work off one suite, and are killed on the way. */
export async function shareSuite(place: Place, service: FlakyService, sharing: Sharing): Promise<Shared> {
  const { cases, trials, lease, concurrency, timeoutMs } = sharing;
  const config = place.write(
    'offsite.yaml',
    stringify({
      profiles: { worker: { run: 'echo done > done.txt' } },
      sandboxes: { local: { memory: '256m' } },
      concurrency,
      advanced: { lease },
      daemon: { suites: ['shared'], profiles: { command: 'worker' }, poll: { min: '200ms', max: '1s' } },
    }),
  );
  const caseIds = Array.from({ length: cases }, (_, position) => `case-${position}`);
  const { runs } = (await service.ask('evals.start', {
    suite: { id: 'shared', name: 'Shared', prompt: 'Do it.' },
    cases: caseIds.map((id) => ({ id, name: id, verify: 'cat done.txt' })),
    variants: [
      { model: 'none', credentials: { harnessConnectionId: 'command', sandboxConnectionId: 'local' } },
    ],
    trials,
    local: true,
  })) as StartResponse;
  const folders = names.map((name) => join(place.folder, name));
  const begin = (dataFolder: string) =>
    start(place, ['daemon', '--config', config], { env: service.env, dataFolder });
  const daemons = folders.map(begin);
  let killed = 0;
  const total = runs.length * trials;
  const deadline = performance.now() + timeoutMs;
  try {
    for (let recorded = 0; recorded < total; ) {
      recorded = await recordedOf(service, caseIds);
      if (killed < sharing.kills && recorded >= ((killed + 1) * total) / (sharing.kills + 1)) {
        const which = killed % daemons.length;
        await end(daemons[which], 'SIGKILL');
        daemons[which] = begin(folders[which] ?? '');
        killed++;
      }
      if (performance.now() > deadline)
        throw new Error(`${recorded} of ${total} trials were recorded in time`);
      await sleep(100);
    }
    for (const daemon of daemons) await end(daemon, 'SIGTERM');
  } finally {
    for (const daemon of daemons) await end(daemon, 'SIGKILL');
  }
  return { kills: killed, recorded: await recordedOf(service, caseIds), ...countFinished(folders) };
}

async function end(daemon: Running | undefined, signal: NodeJS.Signals): Promise<void> {
  daemon?.kill(signal);
  await daemon?.ended;
}

async function recordedOf(service: FlakyService, caseIds: string[]): Promise<number> {
  let recorded = 0;
  for (const caseId of caseIds) {
    const { runs } = (await service.ask('evals.runs.list', { caseId })) as RunsResponse;
    for (const { trials = [] } of runs)
      recorded += trials.filter(({ status }) => status === 'reported').length;
  }
  return recorded;
}

/** Counts over the ledgers of daemons what they ran. */
export function countFinished(folders: string[]): Pick<Shared, 'finished' | 'twice' | 'invalid'> {
  const times = new Map<string, number>();
  let invalid = 0;
  const finished = folders.map((folder) => {
    using ledger = new Ledger(folder, systemClock);
    const attempts = ledger.records.all(
      `SELECT runs.id, trials.ordinal, attempts.ending IN ('passed', 'failed') AS whole
       FROM attempts JOIN trials ON trials.key = attempts.trial JOIN runs ON runs.key = trials.run`,
    );
    const whole = attempts.filter((row) => row.whole === 1);
    for (const { id, ordinal } of whole)
      times.set(`${id} ${ordinal}`, (times.get(`${id} ${ordinal}`) ?? 0) + 1);
    invalid += attempts.length - whole.length;
    return whole.length;
  });
  return { finished, twice: [...times.values()].filter((count) => count > 1).length, invalid };
}
