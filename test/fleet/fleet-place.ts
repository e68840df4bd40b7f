import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { stringify } from 'yaml';
import type { RunRecord } from '../../src/contract/record.ts';
import { type FlakyService, openFlakyService } from '../cli/flaky-service.ts';
import { type Ended, type Running, start } from '../cli/offsite.ts';
import { openPlace, type Place } from '../cli/place.ts';
import { openTemporal, type TemporalServer } from './temporal-server.ts';

/**
 * A fleet on this machine: a Temporal server, an Eval Service, a storage, and workers with folders of their
 * own.
 */
export interface FleetPlace extends AsyncDisposable {
  place: Place;
  server: TemporalServer;
  service: FlakyService;
  client: Client;
  /** Writes a suite and the configuration; returns the suite's path. */
  suite(parts: FleetSuite): string;
  /** Starts a worker and waits until it polls. With an address, it reaches the server there. */
  worker(
    name: string,
    args?: string[],
    more?: {
      env?: Record<string, string>;
      address?: string;
      /** What its configuration has in place of the fleet's. */
      config?: Record<string, unknown>;
      /** Another Offsite's `main.ts`. */
      program?: string;
    },
  ): Promise<Running>;
  /** Where a worker keeps what it knows. */
  folderOf(name: string): string;
  command(args: string[], env?: Record<string, string>, dataFolder?: string): Running;
  /** Any command of Offsite, with the fleet's configuration. */
  begin(args: string[], env?: Record<string, string>, dataFolder?: string, program?: string): Running;
  run(file: string, ...args: string[]): Promise<Ended>;
  /** Starts a batch, and returns its id. */
  started(file: string, ...args: string[]): Promise<string>;
  /** The service's records of a case's runs, newest first. */
  runs(caseId: string): Promise<RunRecord[]>;
}

export interface FleetSuite {
  cases: Record<string, unknown>[];
  trials?: number;
  prompt?: string;
  model?: string;
  run?: string;
  config?: Record<string, unknown>;
  fleet?: Record<string, unknown>;
}

export async function openFleetPlace(): Promise<FleetPlace> {
  const place = openPlace();
  const opened = new AsyncDisposableStack();
  opened.defer(() => place[Symbol.dispose]());
  const service = opened.use(await openFlakyService(place));
  const server = opened.use(await openTemporal(place.folder));
  const connection = await Connection.connect({ address: server.address });
  opened.defer(() => connection.close());
  const storage = join(place.folder, 'storage');
  mkdirSync(storage);
  const running: Running[] = [];
  opened.defer(async () => {
    for (const one of running) one.kill('SIGKILL');
    await Promise.all(running.map(({ ended }) => ended));
  });
  const config = join(place.folder, 'project', 'offsite.yaml');
  let written: { fleet: object } = { fleet: {} };
  const begin = (args: string[], env: Record<string, string> = {}, dataFolder?: string, program?: string) => {
    const one = start(place, args, {
      env: { ...service.env, ...env },
      ...(dataFolder !== undefined && { dataFolder }),
      ...(program !== undefined && { program }),
    });
    running.push(one);
    return one;
  };
  const folderOf = (name: string) => join(place.folder, `worker-${name}`);
  const fleet: FleetPlace = {
    place,
    server,
    service,
    folderOf,
    client: new Client({ connection }),
    suite({
      cases,
      trials = 1,
      prompt = 'Do it.',
      model = 'none',
      run = 'echo done > done.txt',
      config: more = {},
      fleet: settings = {},
    }) {
      const content = {
        profiles: { worker: { run } },
        sandboxes: { local: { memory: '256m' } },
        fleet: { address: server.address, storage: { folder: storage }, heartbeat: '10s', ...settings },
        ...more,
        // A worker that is killed keeps its claims for so long.
        advanced: { lease: '5s', ...(more.advanced as object | undefined) },
      };
      written = content;
      place.write('offsite.yaml', stringify(content));
      const worker = { name: 'worker', model, harness: 'command', profile: 'worker' };
      const suite = { suite: { id: 'small', prompt }, trials, variants: [worker], cases };
      return place.write('suite.yaml', stringify(suite));
    },
    async worker(name, args = [], { env = {}, address = server.address, config: more = {}, program } = {}) {
      const own = { ...written, ...more, fleet: { ...written.fleet, address } };
      const file = place.write(`${name}.yaml`, stringify(own));
      const one = begin(['fleet', 'worker', '--config', file, ...args], env, folderOf(name), program);
      await one.printed(/the worker is working/);
      return one;
    },
    command: (args, env, dataFolder) => begin(['fleet', ...args, '--config', config], env, dataFolder),
    begin: (args, env, dataFolder, program) => begin([...args, '--config', config], env, dataFolder, program),
    run: (file, ...args) => begin(['fleet', 'run', file, ...args]).ended,
    async started(file, ...args) {
      const { stdout, stderr, exitCode } = await fleet.run(file, '--detach', ...args);
      if (exitCode !== 0) throw new Error(stderr);
      return stdout.trim();
    },
    async runs(caseId) {
      return ((await service.ask('evals.runs.list', { caseId })) as { runs: RunRecord[] }).runs;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  return fleet;
}
