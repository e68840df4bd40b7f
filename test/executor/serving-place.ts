import { join } from 'node:path';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import { systemClock } from '../../src/base/clock.ts';
import type { RunRecord } from '../../src/contract/record.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { type Ended, offsite, type Running, start } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';

const apiKey = 'ofs_key_of_the_tests_0123456789';

/** A server that runs, and its address. */
export interface Serving extends Running {
  url: string;
  apiKey: string;
  ask(operation: string, body: unknown): Promise<{ status: number; body: unknown }>;
}

/** A machine on which `offsite serve` runs, once or several times over one data folder. */
export interface ServingPlace extends AsyncDisposable {
  place: Place;
  configure(config?: Record<string, unknown>): void;
  /** Starts a server and waits until it has printed `ready`. Killed with the place, if not before. */
  serve(options?: ServeOptions): Promise<Serving>;
  /** Another command in the same data folder. */
  command(...args: (string | { env: Record<string, string> })[]): Promise<Ended>;
  /** What the data folder's ledger says of all attempts, by run and ordinal. */
  attempts(): { trial: string; ending: string | null }[];
}

interface ServeOptions {
  args?: string[];
  env?: Record<string, string>;
  ready?: RegExp;
}

export function openServingPlace(): ServingPlace {
  const place = openPlace();
  const config = join(place.folder, 'project', 'offsite.yaml');
  const servers: Running[] = [];
  const configure = (more: Record<string, unknown> = {}) => {
    const content = {
      profiles: { worker: { run: 'eval "$act"' } },
      sandboxes: { local: { memory: '256m' } },
      daemon: { profiles: { command: 'worker' } },
      ...more,
    };
    place.write('offsite.yaml', stringify(content));
  };
  configure();
  return {
    place,
    configure,
    async serve({ args = [], env = {}, ready = /platform batches run here/ } = {}) {
      const running = start(place, ['serve', '--config', config, ...args], {
        env: { OFFSITE_API_KEY: apiKey, ...env },
      });
      servers.push(running);
      const [, url = ''] = await running.printed(/Eval Service at (http:\S+);/);
      await running.printed(ready);
      return { ...running, url, apiKey, ask: (operation, body) => post(`${url}/v1/${operation}`, body) };
    },
    command(...args) {
      const words = args.filter((arg) => typeof arg === 'string');
      const options = args.find((arg) => typeof arg === 'object');
      return offsite(place, [...words, '--config', config], options);
    },
    attempts() {
      using ledger = new Ledger(place.dataFolder, systemClock);
      return ledger.records
        .all(
          `SELECT runs.id || ' #' || trials.ordinal AS trial, attempts.ending FROM attempts
             JOIN trials ON trials.key = attempts.trial JOIN runs ON runs.key = trials.run
           ORDER BY runs.key, trials.ordinal, attempts.number`,
        )
        .map(({ trial, ending }) => ({
          trial: String(trial),
          ending: ending === null ? null : String(ending),
        }));
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.kill('SIGTERM');
      await Promise.all(servers.map(({ ended }) => ended));
      place[Symbol.dispose]();
    },
  };
}

async function post(url: string, body: unknown): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(60_000),
  });
  return { status: answer.status, body: await answer.json() };
}

/** A variant of the command harness. */
export const worker = {
  model: 'none',
  credentials: { harnessConnectionId: 'command', sandboxConnectionId: 'local' },
};

/** Starts a batch. Its cases' work is in the variable `act`. */
export async function startBatch(
  serving: Serving,
  cases: { id: string; [more: string]: unknown }[],
  more: Record<string, unknown> = {},
): Promise<{ id: string; runs: { id: string; caseId: string }[] }> {
  const { status, body } = await serving.ask('evals.start', {
    suite: { id: 'small', name: 'Small', prompt: 'Do it.' },
    cases: cases.map((one) => ({ name: one.id, ...one })),
    variants: [worker],
    trials: 1,
    ...more,
  });
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return body as { id: string; runs: { id: string; caseId: string }[] };
}

/** The service's records of a case's runs, newest first. */
export async function runsOf(serving: Serving, caseId: string): Promise<RunRecord[]> {
  const { status, body } = await serving.ask('evals.runs.list', { caseId });
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return (body as { runs: RunRecord[] }).runs;
}

/** Resolves with a case's runs once all of them are over. */
export async function endedRuns(serving: Serving, caseId: string): Promise<RunRecord[]> {
  const statuses = async () => (await runsOf(serving, caseId)).map(({ status }) => status);
  await expect
    .poll(statuses, { timeout: 120_000, interval: 200 })
    .not.toEqual(expect.arrayContaining([expect.stringMatching(/queued|running/)]));
  return runsOf(serving, caseId);
}
