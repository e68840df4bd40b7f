import { expect } from 'vitest';
import { type Ended, offsite, start } from '../cli/offsite.ts';
import type { Place } from '../cli/place.ts';
import type { Double } from './http.ts';

export async function succeed(place: Place, args: string[], { env }: Double): Promise<Ended> {
  const ended = await offsite(place, args, { env });
  expect(ended.exitCode, ended.stderr).toBe(0);
  return ended;
}

/** Runs a suite, and kills the command before or after the service records its first report. */
export async function interruptRun(place: Place, suite: string, double: Double, when: 'before' | 'after') {
  const reached = Promise.withResolvers<void>();
  double.onReport = (now) => {
    if (now !== when) return undefined;
    reached.resolve();
    return new Promise(() => undefined);
  };
  const running = start(place, ['run', suite], { env: double.env });
  const ended = running.ended.then(({ stderr }) => {
    throw new Error(`the command ended without a report: ${stderr}`);
  });
  await Promise.race([reached.promise, ended]);
  running.kill('SIGKILL');
  await running.ended;
  double.onReport = undefined;
}
