import { describe, expect, test } from 'vitest';
import { validatorRecords } from '../../src/bounds/grading.ts';
import { captured } from '../../src/validate/record.ts';
import { verdictOf } from '../../src/validate/verify.ts';

const validation = (exitCode?: number) => ({
  id: 'v',
  index: 0,
  name: 'n',
  ...(exitCode !== undefined && { exitCode }),
});
const nothing = { verifySteps: [], validations: [], judgments: [] };

describe('the verdict', () => {
  test('is passed when every step, validation and judged threshold held', () => {
    expect(
      verdictOf({
        verifySteps: [{ command: 'a', exitCode: 0 }],
        validations: [validation(0)],
        judgments: [
          { name: 'j', score: 0.8, threshold: 0.8 },
          { name: 'opinion only', score: 0 },
        ],
      }),
    ).toBe('passed');
  });

  test.each([
    [
      'a verify step',
      {
        ...nothing,
        verifySteps: [
          { command: 'a', exitCode: 0 },
          { command: 'b', exitCode: 2 },
        ],
      },
    ],
    ['a validation', { ...nothing, validations: [validation(0), validation(1)] }],
    ['a validation without a verdict', { ...nothing, validations: [validation()] }],
    [
      'a judgment under its threshold',
      { ...nothing, judgments: [{ name: 'j', score: 0.1, threshold: 0.5 }] },
    ],
    ['a judgment without a score', { ...nothing, judgments: [{ name: 'j', threshold: 0.5 }] }],
  ])('is failed for %s', (_, findings) => {
    expect(verdictOf(findings)).toBe('failed');
  });

  test('is void where there was nothing to check', () => {
    expect(verdictOf(nothing)).toBe('void');
  });
});

test('a captured text keeps its beginning and end, says how much it left out, and is well-formed', () => {
  const text = `begin${'x'.repeat(validatorRecords.bytes.kept)}end\ud800`;
  const result = captured(text);
  expect(result.truncated).toBe(true);
  expect(result.text).toMatch(/^begin/);
  expect(result.text).toMatch(/end\ufffd$/);
  expect(result.text).toContain('[… 9 characters left out …]');
  expect(captured('short')).toEqual({ text: 'short', truncated: false });
});
