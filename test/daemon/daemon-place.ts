import { join } from 'node:path';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import type { DaemonStatus } from '../../src/agent/daemon/status.ts';
import { askDaemon } from '../../src/cli/daemon/ask-daemon.ts';
import type { RunRecord } from '../../src/contract/record.ts';
import { type FlakyService, openFlakyService } from '../cli/flaky-service.ts';
import { type Ended, offsiteHere, type Running, start } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';

/** A machine with a daemon's configuration, and a service that others queue runs at. */
export interface DaemonPlace extends AsyncDisposable {
  place: Place;
  service: FlakyService;
  /** Writes the configuration; what is left out is such that the trials of `queue` can be run. */
  configure(config?: Record<string, unknown>): void;
  /** Starts a batch as somebody else would, one local run a case. Returns its runs' ids. */
  queue(
    caseIds: string[],
    more?: { variant?: object; case?: object; trials?: number; suite?: string },
  ): Promise<string[]>;
  /**
   * Starts the daemon as a process of its own and waits until it works. Ended with the place, if it is not
   * before.
   */
  daemon(args?: string[], env?: Record<string, string>, dataFolder?: string): Promise<Running>;
  /** Has a daemon drain all that is queued, and end. */
  drained(): Promise<Ended>;
  /** Another command in the same data folder. */
  command(...args: string[]): Promise<Ended>;
  /** Pauses the daemon, or ends the pause, by its socket. */
  tell(what: 'pause' | 'unpause'): Promise<unknown>;
  /** Reports a trial of a run as failed, as another agent would. */
  endElsewhere(run: string, caseName: string, ordinal?: number): Promise<void>;
  /** The service's records of a case's runs, newest first. */
  runs(caseId: string): Promise<RunRecord[]>;
  /** Resolves once the service was asked to take so many reports in all. */
  reported(count: number): Promise<void>;
  /** Resolves once the daemon's status is as wanted; asks again and again for two minutes. */
  once(wanted: (status: DaemonStatus) => boolean): Promise<DaemonStatus>;
}

export async function openDaemonPlace(): Promise<DaemonPlace> {
  const place = openPlace();
  const service = await openFlakyService(place);
  const config = join(place.folder, 'project', 'offsite.yaml');
  const daemons: Running[] = [];
  const command = (...args: string[]) =>
    offsiteHere(place, [...args, '--config', config], { env: service.env });
  const status = async () => (await askDaemon(place.dataFolder, 'GET', '/status')) as DaemonStatus;
  const begin = (args: string[], env: Record<string, string> = {}, dataFolder?: string) => {
    const running = start(place, ['daemon', '--config', config, ...args], {
      env: { ...service.env, ...env },
      ...(dataFolder !== undefined && { dataFolder }),
    });
    daemons.push(running);
    return running;
  };
  return {
    place,
    service,
    configure(more = {}) {
      const { daemon, ...others } = more as { daemon?: object };
      const content = {
        profiles: { worker: { run: 'echo done > done.txt' } },
        sandboxes: { local: { memory: '256m' } },
        daemon: {
          suites: ['small'],
          profiles: { command: 'worker' },
          poll: { min: '200ms', max: '2s' },
          ...daemon,
        },
        ...others,
      };
      place.write('offsite.yaml', stringify(content));
    },
    async queue(caseIds, { variant = {}, case: more = {}, trials = 1, suite = 'small' } = {}) {
      const credentials = { harnessConnectionId: 'command', sandboxConnectionId: 'local' };
      const started = (await service.ask('evals.start', {
        suite: { id: suite, name: suite, prompt: 'Do it.' },
        cases: caseIds.map((id) => ({ id, name: id, verify: 'cat done.txt', ...more })),
        variants: [{ model: 'none', credentials, ...variant }],
        trials,
        local: true,
      })) as { runs: { id: string }[] };
      return started.runs.map(({ id }) => id);
    },
    async daemon(args = [], env = {}, dataFolder) {
      const running = begin(args, env, dataFolder);
      await running.printed(/the daemon is working/);
      return running;
    },
    drained: () => begin(['--once']).ended,
    command,
    tell: (what) => askDaemon(place.dataFolder, 'POST', `/${what}`),
    async endElsewhere(run, caseName, ordinal = 0) {
      const outcome = { passed: false, exitCode: 1 };
      const trial = { caseName, ordinal, taskIndex: 0, sandboxId: 'x', events: [], outcome };
      expect(await service.ask('evals.reportTrial', { id: run, trial })).not.toHaveProperty('_tag');
    },
    async runs(caseId) {
      return ((await service.ask('evals.runs.list', { caseId })) as { runs: RunRecord[] }).runs;
    },
    async reported(count) {
      await expect.poll(() => reports(service)).toBeGreaterThanOrEqual(count);
    },
    async once(wanted) {
      for (const end = Date.now() + 120_000; ; ) {
        const now = await status();
        if (wanted(now)) return now;
        if (Date.now() > end) throw new Error(`still ${JSON.stringify(now)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    async [Symbol.asyncDispose]() {
      for (const daemon of daemons) daemon.kill('SIGKILL');
      await Promise.all(daemons.map(({ ended }) => ended));
      await service[Symbol.asyncDispose]();
      place[Symbol.dispose]();
    },
  };
}

function reports({ asked }: FlakyService): number {
  return asked.filter((operation) => operation === 'evals.reportTrial').length;
}
