import type { ReportedTrial } from '../../src/contract/report.ts';

/**
 * A trial of medium size, about 10 KB as JSON: 20 commands, 4 verify steps, 2 validations with their output.
 */
export function exampleTrial(caseName: string, ordinal: number): ReportedTrial {
  const at = 1_750_000_000_000;
  const output = 'ok 1 - the parser keeps the last line without a newline\n'.repeat(6);
  return {
    caseName,
    ordinal,
    taskIndex: 0,
    sandboxId: `sandbox-${ordinal}`,
    events: [
      { _tag: 'Started', model: 'example', sessionId: `session-${ordinal}`, at },
      ...Array.from({ length: 20 }, (_, index) => ({
        _tag: 'command' as const,
        command: `npm test -- --grep 'part ${index}'`,
        exitCode: index % 5 === 0 ? 1 : 0,
        startedAtMillis: at + index * 1000,
        finishedAtMillis: at + index * 1000 + 400,
        output,
        outputTruncated: false,
      })),
    ],
    outcome: {
      commandCount: 20,
      exitCode: 0,
      modelMs: 41_000,
      sandboxMs: 8_000,
      passed: ordinal % 2 === 0,
      verifySteps: Array.from({ length: 4 }, (_, index) => ({ command: `./check ${index}`, exitCode: 0 })),
      artifacts: [{ path: 'coverage.json', byteSize: 4096, sha256: 'a'.repeat(64) }],
      validations: [0, 1].map((index) => ({
        id: `validation-${index}`,
        index,
        name: `validation ${index}`,
        startedAt: at,
        durationMs: 12,
        exitCode: 0,
        output: { text: output, truncated: false },
        logs: [{ index: 0, at, value: { text: output, truncated: false } }],
      })),
    },
    usage: { inputTokens: 120_000, outputTokens: 4_000, totalTokens: 124_000, costUsd: 0.42 },
  };
}
