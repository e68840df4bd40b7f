import { describe, expect, test } from 'vitest';
import { cliEnding } from '../../src/harness/cli-ending.ts';
import { modelFailure, type TurnStatus } from '../../src/harness/turn-record.ts';
import { exited } from './recorded-streams.ts';

const stop = AbortSignal.abort(new Error('the budget is spent'));
const limits = { timeoutMs: 5_000, signal: new AbortController().signal, stop };

function endingOf(result: Parameters<typeof cliEnding>[1], status: TurnStatus, problem?: string) {
  return cliEnding('The CLI', result, { status, problem, unread: undefined }, limits);
}

describe('how a turn ended', () => {
  const begun: TurnStatus = { kind: 'started' };

  test('is what the stream said, whatever the exit code', () => {
    expect(endingOf(exited(1), { kind: 'done' })).toEqual({ ended: 'exited', exitCode: 1 });
    const status: TurnStatus = { kind: 'agent-failed', message: 'gave up' };
    expect(endingOf(exited(0), status)).toEqual({ ended: 'agent-failed', message: 'gave up', exitCode: 0 });
  });

  test('is out of memory only where the stream did not end: a command may have been what was killed', () => {
    const killed = exited(137, { oomKilled: true });
    expect(endingOf(killed, begun)).toEqual({ ended: 'out-of-memory' });
    expect(endingOf(killed, { kind: 'done' })).toEqual({ ended: 'exited', exitCode: 137 });
  });

  test('is broken where it exits without a word, and says its last ones', () => {
    expect(endingOf(exited(1, { stderr: 'error: unknown option --json\n' }), { kind: 'unknown' })).toEqual({
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
    const done: TurnStatus = { kind: 'done' };
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
    expect(endingOf(result, { kind: 'unknown' })).toMatchObject({
      ended: 'runner-broke',
      message: 'The CLI could not be started: no such file',
    });
  });
});

test('a conversation that outgrew its model is the failure of the agent that let it', () => {
  expect(modelFailure("This model's maximum context length is 8192 tokens.").kind).toBe('agent-failed');
  expect(modelFailure('context_length_exceeded').kind).toBe('agent-failed');
  expect(modelFailure('500 Internal Server Error').kind).toBe('model-failed');
});
