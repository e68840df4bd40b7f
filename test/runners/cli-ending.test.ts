import { describe, expect, test } from 'vitest';
import { cliEnding } from '../../src/harness/cli-ending.ts';
import { gaveUpOver } from '../../src/harness/model-failure.ts';
import type { Told } from '../../src/harness/turn-record.ts';
import { exited } from './recorded-streams.ts';

const stop = AbortSignal.abort(new Error('the budget is spent'));
const limits = { timeoutMs: 5_000, signal: new AbortController().signal, stop };

function endingOf(result: Parameters<typeof cliEnding>[1], told: Told, trouble?: string) {
  return cliEnding('The CLI', result, { told, trouble, isOverlarge: false }, limits);
}

describe('how a turn ended', () => {
  const begun: Told = { told: 'begun' };

  test('is what the stream said, whatever the exit code', () => {
    expect(endingOf(exited(1), { told: 'done' })).toEqual({ ended: 'exited', exitCode: 1 });
    const told: Told = { told: 'agent-failed', message: 'gave up' };
    expect(endingOf(exited(0), told)).toEqual({ ended: 'agent-failed', message: 'gave up', exitCode: 0 });
  });

  test('is out of memory only where the stream did not end: a command may have been what was killed', () => {
    const killed = exited(137, { oomKilled: true });
    expect(endingOf(killed, begun)).toEqual({ ended: 'out-of-memory' });
    expect(endingOf(killed, { told: 'done' })).toEqual({ ended: 'exited', exitCode: 137 });
  });

  test('is broken where it exits without a word, and says its last ones', () => {
    expect(endingOf(exited(1, { stderr: 'error: unknown option --json\n' }), { told: 'nothing' })).toEqual({
      ended: 'runner-broke',
      exitCode: 1,
      message: 'The CLI exited with 1 and did not say how its turn ended: error: unknown option --json',
    });
  });

  test("is the agent's failure where a signal from within the sandbox ended it", () => {
    for (const exitCode of [130, 137, 143]) {
      expect(endingOf(exited(exitCode), begun)).toMatchObject({ ended: 'agent-failed', exitCode });
    }
    expect(endingOf(exited(139), begun)).toMatchObject({ ended: 'runner-broke' });
  });

  test('is stopped, timed out or out of disk where the engine ended it, whatever it had said', () => {
    const { exitCode: _, ...facts } = exited(0);
    const done: Told = { told: 'done' };
    expect(endingOf({ ...facts, ended: 'canceled' }, done)).toEqual({
      ended: 'stopped',
      message: 'the budget is spent',
    });
    expect(endingOf({ ...facts, ended: 'timed-out' }, done)).toEqual({ ended: 'timed-out', afterMs: 5_000 });
    expect(endingOf({ ...facts, ended: 'out-of-disk' }, done)).toEqual({ ended: 'out-of-disk' });
  });

  test('is broken where it could not be started', () => {
    const { exitCode: _, ...facts } = exited(0);
    const result = { ...facts, ended: 'not-started' as const, message: 'no such file' };
    expect(endingOf(result, { told: 'nothing' })).toMatchObject({
      ended: 'runner-broke',
      message: 'The CLI could not be started: no such file',
    });
  });
});

test('a conversation that outgrew its model is the failure of the agent that let it', () => {
  expect(gaveUpOver("This model's maximum context length is 8192 tokens.").told).toBe('agent-failed');
  expect(gaveUpOver('context_length_exceeded').told).toBe('agent-failed');
  expect(gaveUpOver('500 Internal Server Error').told).toBe('model-failed');
});
