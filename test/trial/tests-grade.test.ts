import { describe, expect, test } from 'vitest';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import type { Container } from '../../src/engine/container.ts';
import type { ExecResult } from '../../src/engine/exec/exec-request.ts';
import type { CaseTests } from '../../src/suite/case-tests.ts';
import { gradeOf } from '../../src/trial/grade/tests-grade.ts';
import { scriptTests } from './script-tests.ts';

interface Ran {
  json?: string;
  text?: string;
  printed?: string;
  exitCode?: number;
}

/** The grade of tests that wrote these rewards, or printed this. */
function graded({ json, text, printed = '', exitCode = 0 }: Ran, change: Partial<CaseTests> = {}) {
  const files: Record<string, string | undefined> = {
    '/logs/verifier/reward.json': json,
    '/logs/verifier/reward.txt': text,
  };
  const container = {
    kindOf: async () => 'folder',
    async *archive(path: string) {
      const content = files[path];
      if (content === undefined) throw new OffsiteError('', { code: 'ENGINE_NOT_FOUND', kind: 'input' });
      yield {
        type: 'file',
        content: async function* () {
          yield Buffer.from(content);
        },
      };
    },
  } as unknown as Container;
  const output = { text: printed, truncated: false };
  const result = { ended: 'exited', exitCode, stdout: output, startedAt: 0, finishedAt: 1 };
  const signal = new AbortController().signal;
  return gradeOf(result as ExecResult, scriptTests('true', change), container, signal);
}

describe('several rewards', () => {
  const rewards = { json: '{"exact": 0.5, "speed": 3}', text: '0' };

  test('are each judged by its threshold', async () => {
    const thresholds = { default: 1, byName: { exact: 0.5 } };
    const reached = await graded(rewards, { thresholds });
    expect(reached.validations).toMatchObject([{ status: 'passed', exitCode: 0 }]);
    expect(reached.judgments.map(({ name, score, threshold }) => [name, score, threshold])).toEqual([
      ['exact', 0.5, 0.5],
      ['speed', 3, undefined],
    ]);
    const below = await graded(rewards);
    expect(below.validations).toMatchObject([{ status: 'failed', message: 'exact is 0.5, below 1' }]);
  });

  test('are judged by those with a threshold of their own, and by all if there is none of these', async () => {
    const thresholds = { default: 1, byName: { reward: 1 } };
    const statusOf = async (json: string) =>
      (await graded({ json, exitCode: 3 }, { thresholds })).validations[0]?.status;
    expect(await statusOf('{"reward": 1, "format_ok": 0}')).toBe('passed');
    expect(await statusOf('{"reward": 0, "format_ok": 1}')).toBe('failed');
    expect(await statusOf('{"format_ok": 0}')).toBe('failed');
  });
});

test('no reward is the failure of the grading, and not the reward 0', async () => {
  const none = await graded({ printed: 'why\n' });
  expect(none.validations).toEqual([]);
  expect(none.failure).toMatchObject({ kind: 'broken', output: 'why\n' });
  expect(none.failure?.message).toMatch(/wrote neither reward\.json nor reward\.txt \(bash exited with 0\)$/);
  expect((await graded({ text: 'nan' })).failure?.message).toMatch(/has nan, which is not a finite number/);
});

test('tests that find no program in a PATH of their own say which it is', async () => {
  const { failure } = await graded({ exitCode: 127 }, { env: { PATH: '/nowhere' } });
  expect(failure?.message).toMatch(/exited with 127\); their PATH is \/nowhere$/);
});

test('tests may print their results: the share of those that passed is the reward', async () => {
  const reading = { kind: 'printed-tests', parser: 'pytest' } as const;
  const printing = (lines: string) =>
    graded({ printed: `=== short test summary info ===\n${lines}` }, { reading });
  const all = await printing('PASSED a\nPASSED b\n');
  expect(all.validations).toMatchObject([{ status: 'passed' }]);
  const half = await printing('PASSED a\nFAILED b - no\n');
  expect(half.judgments).toEqual([{ name: 'tests', evaluator: 'tests', score: 0.5, threshold: 1 }]);
  const none = await printing('nothing\n');
  expect(none.failure?.message).toContain('the output of pytest names no test in its summary');
});
