import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runHostProgram } from '../src/base/host-program.ts';

const { env } = process;
const run = (script: string, more: { deadlineMs?: number; signal?: AbortSignal } = {}) =>
  runHostProgram({
    command: 'sh',
    args: ['-c', script],
    purpose: 'do it',
    env,
    deadlineMs: 60_000,
    ...more,
  });
/** A process that keeps the output open, and says its id. */
const leavesOne = 'sleep 300 & echo "its id is $!."; wait';
const idIn = (message: string) => Number(/its id is (\d+)\./.exec(message)?.[1]);
/** A process that nobody has waited for yet is dead too. */
const isAlive = (pid: number) => {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};
const messageOf = (work: Promise<string>) => work.then(String, (error: Error) => error.message);

test('returns both streams of a program', async () => {
  expect(await run('echo out; echo err >&2')).toBe('out\nerr');
});

test('says how a program failed, and what it said last', async () => {
  expect(await messageOf(run('echo no room; exit 3'))).toBe('Could not do it: sh exited with 3.\nno room');
});

test('ends at the deadline with all that the program started', async () => {
  const message = await messageOf(run(leavesOne, { deadlineMs: 500 }));
  expect(message).toMatch(/^Could not do it: sh did not finish within 0\.5 s\./);
  expect(idIn(message)).toBeGreaterThan(1);
  expect(isAlive(idIn(message))).toBe(false);
});

test('ends at an abort, and rejects with its reason', async () => {
  const stop = new AbortController();
  const running = run(leavesOne, { signal: stop.signal });
  setTimeout(() => stop.abort(new Error('stopped by a person')), 200);
  expect(await messageOf(running)).toBe('stopped by a person');
  expect(await messageOf(run('true', { signal: stop.signal }))).toBe('stopped by a person');
});

test('survives a program that signals its group', async () => {
  expect(await messageOf(run('kill -HUP 0'))).toBe('Could not do it: sh was ended by SIGHUP.');
});
