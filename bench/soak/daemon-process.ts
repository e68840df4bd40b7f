import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { stringify } from 'yaml';
import type { DaemonStatus } from '../../src/agent/daemon/status.ts';
import { commandLine } from '../memory/measured-run.ts';
import { suiteId } from './feeder.ts';

/** Milliseconds; only for hangs. */
const answerTimeoutMs = 60_000;
const stopTimeoutMs = 300_000;

export interface DaemonPlace {
  /** Must exist; contains the configuration, data and the daemon's log. */
  folder: string;
  service: { url: string; key: string };
  /** Trials at a time; if undefined, the daemon chooses for this machine. */
  concurrency: number | undefined;
}

/** What the kernel reports for a process. */
export interface ProcessSample {
  memoryMiB: number;
  openFiles: number;
}

/** `offsite daemon` in its own process, which can be killed and started again. Needs Linux. */
export class DaemonProcess implements AsyncDisposable {
  readonly #place: DaemonPlace;
  readonly #config: string;
  readonly #dataFolder: string;
  #child: ChildProcess | undefined;

  constructor(place: DaemonPlace) {
    this.#place = place;
    this.#config = join(place.folder, 'offsite.yaml');
    this.#dataFolder = join(place.folder, 'data');
    mkdirSync(this.#dataFolder);
    const config = {
      ...(place.concurrency !== undefined && { concurrency: place.concurrency }),
      daemon: { suites: [suiteId], poll: { min: '1s', max: '5s' }, profiles: { command: 'worker' } },
      profiles: { worker: { run: 'true' } },
      sandboxes: { local: { memory: '256m', network: 'none' } },
    };
    writeFileSync(this.#config, stringify(config));
  }

  get log(): string {
    return join(this.#place.folder, 'daemon.log');
  }

  start(): void {
    const { url, key } = this.#place.service;
    const log = openSync(this.log, 'a');
    const places = ['--config', this.#config, '--data-folder', this.#dataFolder];
    this.#child = spawn(process.execPath, [commandLine(), 'daemon', ...places], {
      env: { ...process.env, OFFSITE_URL: url, OFFSITE_API_KEY: key },
      stdio: ['ignore', log, log],
    });
  }

  /** SIGKILL; resolves when the process has gone. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /**
   * Sends SIGTERM: the daemon ends after its trials are done and reported. Rejects if it ends in another way.
   */
  async drain(): Promise<void> {
    const ended = await this.#end('SIGTERM');
    if (ended !== 0) throw new Error(`the daemon ended with ${ended}: see ${this.log}`);
  }

  /** Throws if it has ended by itself. */
  requireAlive(): void {
    const { exitCode = null, signalCode = null } = this.#child ?? {};
    if (exitCode === null && signalCode === null) return;
    const last = readFileSync(this.log, 'utf8').split('\n').slice(-10).join('\n');
    throw new Error(`the daemon has ended with ${exitCode ?? signalCode}:\n${last}`);
  }

  sample(): ProcessSample {
    const process = `/proc/${this.#child?.pid}`;
    const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`${process}/status`, 'utf8')) ?? [];
    return { memoryMiB: Number(kibibytes) / 1024, openFiles: readdirSync(`${process}/fd`).length };
  }

  /** Undefined until it answers on its socket. */
  async status(): Promise<DaemonStatus | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<DaemonStatus | undefined>();
    const socketPath = join(this.#dataFolder, 'control.sock');
    const request = get({ socketPath, path: '/status', timeout: answerTimeoutMs }, (response) => {
      json(response).then((body) => resolve(body as DaemonStatus), reject);
    });
    request.on('timeout', () => request.destroy(new Error('the daemon does not answer')));
    request.on('error', (error: NodeJS.ErrnoException) => {
      // It is not ready yet, or a killed daemon left this socket.
      const isAway = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET'].includes(error.code ?? '');
      if (isAway) resolve(undefined);
      else reject(error);
    });
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  async #end(signal: NodeJS.Signals): Promise<number | string | null> {
    const child = this.#child;
    if (!child) return 0;
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit', { signal: AbortSignal.timeout(stopTimeoutMs) });
      child.kill(signal);
      await gone;
    }
    return child.exitCode ?? child.signalCode;
  }
}
