import type { StartRequest } from '../../src/contract/definition.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import type { Platform, PlatformRefusal } from '../../src/service/platform.ts';

/** A platform that notes what it is asked, and runs nothing by itself. */
export interface TestPlatform extends Platform {
  asked: StartRequest[];
  /** How often it was notified that runs are queued. */
  notified: number;
}

export function testPlatform(refusal?: PlatformRefusal): TestPlatform {
  const asked: StartRequest[] = [];
  return {
    asked,
    notified: 0,
    async refusal(request) {
      asked.push(request);
      return refusal;
    },
    queued() {
      this.notified++;
    },
  };
}

export function trialRecord(change: Partial<TrialRecord> = {}): TrialRecord {
  return {
    version: recordVersion,
    verdict: 'passed',
    startedAt: 1000,
    finishedAt: 2000,
    phases: [],
    modelUnmeasured: false,
    ...change,
  };
}

/** A record with something in every field that a stored record has. */
export function fullRecord(): TrialRecord {
  const text = (content: string, format: 'text' | 'json' = 'text') => ({
    text: content,
    format,
    state: 'captured',
    truncated: false,
  });
  const usage = { inputTokens: 900, outputTokens: 100, totalTokens: 1000 };
  const complete = { ...usage, cacheReadTokens: 300, cacheWriteTokens: 0 };
  return trialRecord({
    verdict: 'failed',
    subject: {
      caseName: 'CSV',
      ordinal: 0,
      model: 'small',
      harness: 'command',
      profile: 'careful',
      profileVersion: '0123456789ab',
      image: 'offsite/base',
      network: 'models',
      prompt: 'Mend the parser.',
    },
    sandboxId: 'sandbox-1',
    harness: { ended: 'exited', exitCode: 0 },
    harnessVersion: '2.1.0',
    harnessTellsCommands: true,
    trajectory: [
      {
        _tag: 'command',
        command: 'npm test',
        exitCode: 1,
        output: 'not ok',
        outputTruncated: false,
        startedAtMillis: 1100,
        finishedAtMillis: 1400,
      },
      { _tag: 'command', command: 'true', exitCode: 0, startedAtMillis: 1500, finishedAtMillis: 1600 },
    ],
    models: {
      exchanges: [],
      connections: [],
      usage: [
        {
          role: 'agent',
          model: 'small',
          requests: 3,
          usage: { ...complete, costUsd: 0.5 },
          pricesOf: '2026-01-01',
        },
        {
          role: 'judge',
          model: 'large',
          requests: 1,
          usage: { ...usage, costUsd: 0.25 },
          answeredBy: 'large-2',
        },
        { role: 'user', model: 'tiny', requests: 2, usage },
      ],
      modelMs: 250,
      agent: { acted: true },
    },
    filesChanged: ['parse.js'],
    filesChangedCount: 1,
    artifacts: [{ path: 'out.txt', byteSize: 3, sha256: 'a'.repeat(64) }],
    verifySteps: [{ command: 'npm test', exitCode: 1, output: 'not ok 1', outputTruncated: false }],
    validations: [
      {
        id: 'validation-0',
        index: 0,
        name: 'reads quotes',
        kind: 'code',
        status: 'failed',
        startedAt: 1700,
        durationMs: 90,
        message: 'expected 3',
        exitCode: 1,
        truncated: false,
        input: text('{"rows":3}', 'json'),
        output: text('4'),
        error: text('AssertionError'),
        calls: [
          {
            index: 0,
            method: 'answer',
            startedAt: 1710,
            durationMs: 20,
            input: text('[]', 'json'),
            output: text('yes'),
            error: text('late'),
          },
        ],
        logs: [{ index: 0, at: 1720, level: 'stderr', value: text('warning') }],
        metadata: text('{"seed":1}', 'json'),
      },
    ],
    judgments: [
      {
        name: 'reads quotes',
        model: 'large',
        evaluator: 'rubric',
        score: 0.4,
        choice: 'no',
        reason: 'It rambles.',
        threshold: 0.7,
        durationMs: 20,
      },
      { name: 'is short', score: 0.9, threshold: 0.5 },
    ],
  });
}
