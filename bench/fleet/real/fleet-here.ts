import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { stringify } from 'yaml';
import { connectEngine } from '../../../src/engine/connect.ts';
import { type FaultFront, openFaultFront } from '../../../test/faults/fault-front.ts';
import { openTemporal, type TemporalServer } from '../../../test/fleet/temporal-server.ts';
import { type OffsiteProcess, startOffsite } from './offsite-process.ts';

/** What the agent of a trial does: nothing, or a nap of 2 to 6.9 seconds, for which it needs no processor. */
const profiles = {
  noop: { run: 'true' },
  napping: { run: 'sleep $((2 + RANDOM % 5)).$((RANDOM % 10))' },
};

/** A suite of trials that all do the same. */
export interface BenchSuite {
  /** A multiple of ten, or less than ten. */
  trials: number;
  profile: keyof typeof profiles;
}

/** When a batch started at the Eval Service, and when it accepted each report: milliseconds of one clock. */
export interface MeasuredBatch {
  id: string;
  startedAt: number;
  reportedAt: number[];
}

export const caseIds = (count: number) => Array.from({ length: count }, (_, index) => `case-${index}`);
/** A suite allows no more. */
const mostOfACase = 10;
const lookMs = 20;
/** Milliseconds that the engine may need to see that an Offsite process is gone. */
const markerMs = 5_000;
/** Milliseconds; only for hangs. */
const hangMs = { start: 120_000, end: 180_000, trial: 10_000 };

/**
 * A fleet of processes on this machine: a Temporal server, an Eval Service, a folder as storage, and workers
 * that share one engine, each with a data folder of its own.
 */
export class FleetHere implements AsyncDisposable {
  readonly folder: string;
  readonly front: FaultFront;
  readonly temporal: TemporalServer;
  readonly client: Client;
  readonly #opened: AsyncDisposableStack;
  readonly #running = new Set<OffsiteProcess>();
  readonly #workers = new Map<string, OffsiteProcess>();
  /** The most cases that a batch had; all batches have the same ones. */
  mostCases = 0;
  #started = 0;
  #hasKilled = false;
  #batch: { startedAt: number; reportedAt: number[] } | undefined;

  private constructor(parts: {
    folder: string;
    front: FaultFront;
    temporal: TemporalServer;
    client: Client;
    opened: AsyncDisposableStack;
  }) {
    ({ folder: this.folder, front: this.front, temporal: this.temporal, client: this.client } = parts);
    this.#opened = parts.opened;
    // Reports are counted where they arrive: what the service accepts is in `front.accepted`.
    this.front.fate = (operation) => {
      if (operation === 'evals.start') this.#batch = { startedAt: performance.now(), reportedAt: [] };
      if (operation === 'evals.reportTrial') this.#batch?.reportedAt.push(performance.now());
      return 'pass';
    };
  }

  /** @param times how long a killed worker keeps its trials; the usual times if undefined */
  static async open(times?: { heartbeat: string; lease: string }): Promise<FleetHere> {
    await using opening = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), 'offsite-fleet-'));
    opening.defer(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(join(folder, 'storage'));
    mkdirSync(join(folder, 'logs'));
    const front = opening.use(await openFaultFront(join(folder, 'service'), { claims: true }));
    const temporal = opening.use(await openTemporal(folder));
    const connection = await Connection.connect({ address: temporal.address });
    opening.defer(() => connection.close());
    const config = {
      profiles,
      sandboxes: { local: { memory: '256m', network: 'none' } },
      ...(times && { lease: times.lease }),
      fleet: {
        address: temporal.address,
        storage: { folder: join(folder, 'storage') },
        ...(times && { heartbeat: times.heartbeat }),
      },
    };
    writeFileSync(join(folder, 'offsite.yaml'), stringify(config));
    const client = new Client({ connection });
    return new FleetHere({ folder, front, temporal, client, opened: opening.move() });
  }

  get workers(): string[] {
    return [...this.#workers.keys()];
  }

  pidOf(worker: string): number {
    return this.#workerNamed(worker).pid;
  }

  /** The data folder of a worker, or of the one `offsite run`. */
  dataFolderOf(name: string): string {
    return join(this.folder, `data-${name}`);
  }

  /** Starts a worker and waits until it polls. */
  async startWorker(name: string, concurrency: number): Promise<void> {
    const worker = this.#offsite(['fleet', 'worker', '-c', String(concurrency)], name);
    this.#workers.set(name, worker);
    const isReady = () => worker.output().includes('the worker is working');
    await this.#until(() => isReady() || !worker.isRunning(), hangMs.start, `worker ${name} starts`);
    if (!isReady()) throw new Error(`worker ${name} ended:\n${worker.output()}`);
  }

  /** SIGKILL; resolves when it has gone. */
  async killWorker(name: string): Promise<void> {
    const worker = this.#workerNamed(name);
    worker.kill('SIGKILL');
    await worker.ended;
    this.#hasKilled = true;
    this.#workers.delete(name);
  }

  /** Ends all workers when what they run is reported. Throws if one ends in another way. */
  async drain(): Promise<void> {
    const draining = [...this.#workers].map(async ([name, worker]) => {
      worker.kill('SIGTERM');
      const code = await within(hangMs.end, worker.ended, `worker ${name} drains`);
      if (code !== 0) throw new Error(`worker ${name} ended with ${code}:\n${worker.output()}`);
    });
    this.#workers.clear();
    await Promise.all(draining);
  }

  /**
   * Runs a suite on the workers until all its trials are reported.
   *
   * @param during begins when the batch has started; gets a function that says whether all trials are
   * reported
   */
  async runOnFleet(
    suite: BenchSuite,
    during: (isOver: () => boolean) => Promise<void> = async () => undefined,
  ): Promise<MeasuredBatch> {
    const before = this.front.accepted.size;
    const command = this.#offsite(['fleet', 'run', this.#write(suite), '--detach'], 'starter');
    const code = await within(hangMs.start, command.ended, 'a batch starts');
    const [id] = /^[^\s:]+$/m.exec(command.output()) ?? [];
    if (code !== 0 || id === undefined) throw new Error(`no batch started:\n${command.output()}`);
    const isOver = () => this.front.accepted.size >= before + suite.trials;
    const ms = hangMs.end + suite.trials * hangMs.trial;
    await Promise.all([this.#until(isOver, ms, 'all trials are reported'), during(isOver)]);
    return { id, ...this.#measured() };
  }

  /** Runs a suite with one agent, `offsite run`. */
  async runHere(suite: BenchSuite, concurrency: number): Promise<MeasuredBatch> {
    const command = this.#offsite(['run', this.#write(suite), '-c', String(concurrency)], 'agent');
    const code = await within(hangMs.end + suite.trials * hangMs.trial, command.ended, 'the agent ends');
    if (code !== 0) throw new Error(`the agent ended with ${code}:\n${command.output()}`);
    return { id: '', ...this.#measured() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const running = [...this.#running].filter((one) => one.isRunning());
    for (const one of running) one.kill('SIGKILL');
    await Promise.all(running.map(({ ended }) => ended));
    await this.#opened.disposeAsync();
    if (running.length > 0 || this.#hasKilled) await sweep();
  }

  #measured() {
    const batch = this.#batch;
    if (!batch) throw new Error('no batch was started');
    return batch;
  }

  #workerNamed(name: string): OffsiteProcess {
    const worker = this.#workers.get(name);
    if (!worker) throw new Error(`there is no worker ${name}`);
    return worker;
  }

  #write({ trials, profile }: BenchSuite): string {
    const ofACase = Math.min(trials, mostOfACase);
    this.mostCases = Math.max(this.mostCases, trials / ofACase);
    const file = join(this.folder, 'suite.yaml');
    const suite = {
      suite: { id: 'fleet', prompt: 'nothing' },
      trials: ofACase,
      variants: [{ name: 'worker', model: 'none', harness: 'command', profile }],
      cases: caseIds(trials / ofACase).map((id) => ({ id, verify: 'true' })),
    };
    writeFileSync(file, stringify(suite));
    return file;
  }

  #offsite(args: string[], name: string): OffsiteProcess {
    const places = ['--config', join(this.folder, 'offsite.yaml'), '--data-folder', this.dataFolderOf(name)];
    const env = { OFFSITE_URL: this.front.url, OFFSITE_API_KEY: this.front.key, HOME: this.folder };
    const log = join(this.folder, 'logs', `${name}-${++this.#started}.log`);
    const one = startOffsite([...args, ...places], env, log);
    this.#running.add(one);
    return one;
  }

  async #until(isSo: () => boolean, ms: number, what: string): Promise<void> {
    for (const end = performance.now() + ms; !isSo(); await sleep(lookMs))
      if (performance.now() > end) throw new Error(`not within ${ms / 1000} s: ${what}`);
  }
}

/** Removes what killed processes left on the engine, as the next agent would. */
async function sweep(): Promise<void> {
  await using engine = await connectEngine({ instance: `bench-${randomUUID()}` });
  await sleep(markerMs);
  await engine.sweep(AbortSignal.timeout(hangMs.end));
}

/** Ends a fleet when this process gets SIGINT or SIGTERM. */
export function endOnSignal(fleet: FleetHere): Disposable {
  const end = () => void fleet[Symbol.asyncDispose]().finally(() => process.exit(130));
  process.once('SIGINT', end).once('SIGTERM', end);
  return { [Symbol.dispose]: () => void process.off('SIGINT', end).off('SIGTERM', end) };
}

async function within<Answer>(ms: number, answer: Promise<Answer>, what: string): Promise<Answer> {
  const timeout = AbortSignal.timeout(ms);
  const { promise, reject } = Promise.withResolvers<never>();
  timeout.addEventListener('abort', () => reject(new Error(`not within ${ms / 1000} s: ${what}`)));
  return Promise.race([answer, promise]);
}
