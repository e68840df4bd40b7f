import { expect, test } from 'vitest';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import { reportOf } from '../../src/trial/report.ts';
import { reportedTrial } from './strict.ts';

const subject = { caseName: 'A', taskIndex: 1, ordinal: 0, model: 'none', sessionId: 's' };
const times = { startedAt: 1, finishedAt: 2 };
const cutOff: TrialRecord = {
  version: recordVersion,
  verdict: 'void',
  ...times,
  phases: [],
  modelUnmeasured: true,
};
const finished: TrialRecord = {
  ...cutOff,
  verdict: 'passed',
  sandboxId: 'c1',
  harness: { ended: 'exited', exitCode: 0 },
  trajectory: [],
  modelUnmeasured: false,
  verifySteps: [{ command: 'true', exitCode: 0, output: '', outputTruncated: false }],
  artifacts: [{ path: 'a', byteSize: 1, sha256: '0'.repeat(64) }],
  validations: [],
  judgments: [],
};
const validation = { id: 'v', index: 0, name: 'v', startedAt: 1, durationMs: 1, exitCode: 0 };
const text = { text: 'x', format: 'text', state: 'captured' };

test.for<[string, TrialRecord]>([
  ['that was cut off before it had a sandbox', cutOff],
  ['that was cut off while it ran', { ...cutOff, sandboxId: 'c1' }],
  ['whose harness timed out', { ...finished, harness: { ended: 'timed-out', afterMs: 5 } }],
  ['that passed without a validator', finished],
  [
    'with a validation of a program',
    { ...finished, validations: [{ ...validation, kind: 'program', output: text, error: text }] },
  ],
  [
    'with tests of a program that says of one how long it took',
    {
      ...finished,
      validations: [
        { ...validation, kind: 'program' },
        { id: 'w', index: 1, name: 'w', startedAt: 1, exitCode: 0, kind: 'program' },
      ],
    },
  ],
  [
    'with a validation of a module that asked a judge',
    {
      ...finished,
      validations: [
        {
          ...validation,
          kind: 'code',
          truncated: false,
          message: 'm',
          logs: [{ index: 0, at: 1, level: 'stdout', value: text }],
          calls: [{ index: 0, method: 'judge', startedAt: 1, durationMs: 1, input: text, output: text }],
          judgment: { name: 'v' },
        },
      ],
      judgments: [{ name: 'v', model: 'm', evaluator: 'e', score: 1, durationMs: 1 }],
    },
  ],
])('a service that requires every measured field takes the report of a trial %s', ([, result]) => {
  const { events, ...report } = JSON.parse(JSON.stringify(reportOf(result, subject)));
  expect(reportedTrial({ ...report, events: events.slice(0, 1) }, [])).toEqual([]);
});
