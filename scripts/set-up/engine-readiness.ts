import { readFile } from 'node:fs/promises';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { messageOf, OffsiteError } from '../../src/base/offsite-error.ts';
import { connect } from '../../src/engine/connection/connect.ts';
import type { EngineHome } from './engine-home.ts';

export interface Readiness {
  home: Pick<EngineHome, 'socketPath' | 'logPath'>;
  clock: Clock;
  signal?: AbortSignal;
  deadlineMs?: number;
  /** How the engine's process ended, if it did. */
  gone?: () => Promise<string | undefined>;
}

/**
 * Waits until the engine answers. If it does not, throws an infrastructure error with the last lines of its
 * log.
 */
export async function engineReady(readiness: Readiness): Promise<void> {
  const { home, clock, signal, deadlineMs = 60_000, gone } = readiness;
  const deadline = clock.now() + deadlineMs;
  let failure: string | undefined;
  do {
    failure = await whyUnready(home, signal);
    if (failure === undefined) return;
    const end = await gone?.();
    if (end !== undefined) throw await unready(`it ${end}`, home);
    await clock.sleep(200, signal);
  } while (clock.now() < deadline);
  throw await unready(`${deadlineMs / 1000} s after its start: ${failure}`, home);
}

/** Undefined if it answers. */
async function whyUnready(
  { socketPath }: Readiness['home'],
  signal?: AbortSignal,
): Promise<string | undefined> {
  try {
    const engine = await connect({ host: `unix://${socketPath}`, env: {}, clock: systemClock, signal });
    await engine.close();
    return undefined;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof OffsiteError) return error.message;
    throw error;
  }
}

async function unready(what: string, { logPath }: Readiness['home']): Promise<OffsiteError> {
  const log = await readFile(logPath, 'utf8').catch((error) => `(${messageOf(error)})`);
  const lastWords = log.trimEnd().split('\n').slice(-10).join('\n');
  return new OffsiteError(`The engine did not come up: ${what}.\n${lastWords}`, {
    code: 'ENGINE_START_FAILED',
    kind: 'infrastructure',
    hint:
      `Its log is ${logPath}. An engine cannot run in a container without privileges: ` +
      "use the host's, with DOCKER_HOST.",
  });
}
