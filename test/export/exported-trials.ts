import type { ExportedTrial } from '../../src/record/exported-trial.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';

/** Trials of a batch with two variants, as the export reads them: with all that a record may hold, or little. */

const at = Date.UTC(2026, 2, 12, 14, 14, 0, 7);
const prompt = 'Say "hello",\nand nothing else.';

const usage = {
  inputTokens: 1_000,
  cacheReadTokens: 600,
  cacheWriteTokens: 100,
  outputTokens: 50,
  totalTokens: 1_050,
  costUsd: 0.012_345_678_9,
};

const base = { startedAt: at, finishedAt: at + 9_123, phases: [], modelUnmeasured: false };

const worked: TrialRecord = {
  version: recordVersion,
  ...base,
  verdict: 'failed',
  subject: {
    caseName: 'Hello, world',
    ordinal: 0,
    model: 'm-large',
    harness: 'codex',
    image: 'offsite/base',
    network: 'relay',
    prompt,
    verify: 'test -f hello',
  },
  phases: [
    { name: 'harness', startedAt: at + 1_000, durationMs: 5_000 },
    { name: 'verify', startedAt: at + 6_000, durationMs: 2_000 },
  ],
  harness: { ended: 'exited', exitCode: 0 },
  harnessVersion: '1.2.3',
  finalMessage: 'Done.',
  turns: 1,
  trajectory: [
    {
      _tag: 'command',
      command: 'ls',
      exitCode: 2,
      startedAtMillis: at + 2_000.25,
      finishedAtMillis: at + 2_100,
      output: 'no such "file"\n',
    },
  ],
  events: [
    { kind: 'user', at: at + 1_001, text: prompt },
    { kind: 'message', at: at + 1_900, text: 'I look.' },
    { kind: 'tool', at: at + 3_000, finishedAt: at + 3_500, name: 'read', input: 'a.txt', output: 'a' },
    { kind: 'note', at: at + 3_600, text: 'thinking' },
  ],
  models: {
    exchanges: [
      {
        role: 'agent',
        model: 'm-large',
        wire: 'openai-chat',
        path: '/v1',
        streamed: false,
        status: 200,
        startedAt: at + 1_500,
        finishedAt: at + 1_890,
        failedTries: [],
        usage,
        answeredBy: 'm-large-2',
        requestBytes: 1,
        responseBytes: 1,
      },
    ],
    connections: [],
    usage: [
      { role: 'agent', model: 'm-large', requests: 1, usage },
      {
        role: 'judge',
        model: 'm-judge',
        requests: 1,
        usage: { inputTokens: 7, outputTokens: 1, totalTokens: 8 },
      },
    ],
    modelMs: 390,
    agent: { acted: true },
  },
  filesChanged: ['a.txt'],
  verifySteps: [
    { command: 'test -f hello', exitCode: 1, output: 'Error: "no", none\n', outputTruncated: false },
  ],
  judgments: [{ name: 'taste', score: 0.4, threshold: 0.7, reason: 'dull' }],
};

const lost = { kind: 'infrastructure', phase: 'sandbox', message: 'the engine went away' } as const;

function trial(
  variant: string,
  ordinal: number,
  found: TrialRecord,
  attempts: ExportedTrial['attempts'] = [],
) {
  const counted = { number: attempts.length + 1, startedAt: found.startedAt, ending: found.verdict };
  return {
    version: 1 as const,
    batch: { id: 'batch_1', service: 'embedded', suite: 'Suite, the "first"', startedAt: at },
    run: { id: `run_${variant}`, caseId: 'hello', caseName: 'Hello, world', variant },
    ordinal,
    attempts: [...attempts, counted],
    record: found,
  } satisfies ExportedTrial;
}

/** In the order of an export. */
export const exported: readonly ExportedTrial[] = [
  trial('large', 0, worked, [{ number: 1, startedAt: at - 5_000, ending: 'void', cause: lost }]),
  trial('large', 1, { ...worked, verdict: 'passed', finishedAt: at + 4_001, verifySteps: [], judgments: [] }),
  trial('small/fast', 0, { version: recordVersion, ...base, verdict: 'void', cause: lost }),
  trial('small/fast', 1, {
    version: recordVersion,
    ...base,
    verdict: 'passed',
    harness: { ended: 'timed-out', afterMs: 9_000 },
  }),
];
