import { expect, test } from 'vitest';
import { readRecord } from '../../src/record/read-record.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';

const result: TrialRecord = {
  version: recordVersion,
  verdict: 'failed',
  startedAt: 1_000,
  finishedAt: 5_000,
  phases: [{ name: 'harness', startedAt: 1_000, durationMs: 3_000 }],
  harness: { ended: 'exited', exitCode: 0 },
  events: [{ kind: 'tool', at: 1_200, name: 'read', input: { path: 'a' } }],
  modelUnmeasured: false,
};

/** What JSON keeps of a value. */
const stored = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** A record as it was before records had versions, with a failed request and a refused connection. */
const unversioned = {
  ...result,
  version: undefined,
  models: {
    exchanges: [
      {
        role: 'agent',
        model: 'm',
        wire: 'openai-chat',
        path: '/v1/chat/completions',
        streamed: true,
        startedAt: 1_100,
        finishedAt: 1_200,
        failedTries: [{ at: 1_150, reason: '503' }],
        trouble: 'its upstream cut it',
        usage: {},
        requestBytes: 10,
        responseBytes: 0,
      },
    ],
    connections: [
      {
        host: 'h.example',
        port: 443,
        startedAt: 1_100,
        finishedAt: 1_101,
        sentBytes: 0,
        receivedBytes: 0,
        trouble: 'the sandbox may not reach it',
      },
    ],
    usage: [{ role: 'agent', model: 'm', requests: 1, usage: {} }],
    modelMs: 100,
    agent: { acted: false, modelFailure: 'its upstream cut it' },
  },
  verifySteps: [{ command: 'npm test', exitCode: 1, output: 'no', outputTruncated: false }],
};

test('a record is read as it was written', () => {
  expect(readRecord(stored(result))).toEqual(result);
});

test('a record without a version is brought up to date', () => {
  const record = readRecord(stored(unversioned));
  expect(record.version).toBe(recordVersion);
  expect(record.models?.exchanges[0]).toMatchObject({ failure: 'its upstream cut it' });
  expect(record.models?.exchanges[0]).not.toHaveProperty('trouble');
  expect(record.models?.connections[0]).toMatchObject({ failure: 'the sandbox may not reach it' });
  expect(record.verifySteps).toEqual(unversioned.verifySteps);
});

const nested = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);

test('a record of a tool whose input is as deep as a harness may report it is read', () => {
  const tool = { kind: 'tool' as const, at: 1_200, name: 'edit', input: nested(256) };
  expect(readRecord(stored({ ...result, events: [tool] })).events).toEqual([tool]);
});

test.each([600, 3_000, 100_000])('a record of %d levels is unreadable, and says so', (levels) => {
  const tool = { kind: 'tool', at: 1_200, name: 'edit', input: nested(levels) };
  const read = () => readRecord({ ...result, events: [tool] }, 'trial 3');
  expect(read).toThrowError('trial 3 cannot be read: it has more than 512 levels');
  expect(read).toThrowError(expect.objectContaining({ code: 'RECORD_UNREADABLE' }));
});

test('a record of a newer Offsite is refused, and says so', () => {
  const newer = { ...result, version: recordVersion + 1 };
  const read = () => readRecord(newer, 'trial 3');
  expect(read).toThrowError(/^trial 3 was written by a newer Offsite/);
  expect(read).toThrowError(expect.objectContaining({ code: 'RECORD_NEWER', kind: 'input' }));
});

test.each([
  ['a number', 7, /trial 3 cannot be read: it is not a record/],
  ['null', null, /it is not a record/],
  ['a version that is no number', { version: '1' }, /it is not a record/],
  ['a wrong phase', { ...result, phases: [{ name: 'lunch' }] }, /phases\[0\]\.name: /],
])('%s is not a record, and the error says where', (_, value, message) => {
  expect(() => readRecord(value, 'trial 3')).toThrow(message);
});
