import { readFile } from 'node:fs/promises';
import type { Clock } from '../../src/clock.ts';
import { messageOf, OffsiteError } from '../../src/offsite-error.ts';
import type { EngineHome } from './engine-home.ts';
import { type Ping, pingEngine } from './ping-engine.ts';

export interface Readiness {
  home: EngineHome;
  clock: Clock;
  signal?: AbortSignal;
  deadlineMs?: number;
  /** How the engine's process ended, when it did. */
  gone?: () => Promise<string | undefined>;
}

/** Waits until the engine answers. Throws an infrastructure error with the last lines of its log when it won't. */
export async function engineReady(readiness: Readiness): Promise<void> {
  const { home, clock, signal, deadlineMs = 60_000, gone } = readiness;
  const deadline = clock.now() + deadlineMs;
  let ping: Ping;
  do {
    ping = await pingEngine({ socketPath: home.socketPath }, 5_000, signal);
    if (ping.state === 'alive') return;
    const end = await gone?.();
    if (end !== undefined) throw await unready(`it ${end}`, home);
    await clock.sleep(200, signal);
  } while (clock.now() < deadline);
  const reason = ping.state === 'forbidden' ? 'its socket may not be opened' : ping.reason;
  throw await unready(`${deadlineMs / 1000} s after its start, ${reason}`, home);
}

async function unready(what: string, { logPath }: EngineHome): Promise<OffsiteError> {
  const log = await readFile(logPath, 'utf8').catch((error) => `(${messageOf(error)})`);
  const lastWords = log.trimEnd().split('\n').slice(-10).join('\n');
  return new OffsiteError(`The Docker engine did not come up: ${what}.\n${lastWords}`, {
    code: 'ENGINE_START_FAILED',
    kind: 'infrastructure',
    hint: `Its log is ${logPath}. In a container without privileges no engine can run: use the host's, with DOCKER_HOST.`,
  });
}
