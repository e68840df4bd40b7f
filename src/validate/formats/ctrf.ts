import { z } from 'zod';
import { DocumentTooHeavy, parseCheckedJson } from '../../parse-json.ts';
import type { TestReport } from './reported-test.ts';

/** The parts that we read of the Common Test Report Format (ctrf.io), version 0. */
const Ctrf = z.object({
  results: z.object({
    tests: z.array(
      z.object({
        name: z.string(),
        status: z.enum(['passed', 'failed', 'skipped', 'pending', 'other']),
        duration: z.number().optional(),
        message: z.string().optional(),
        trace: z.string().optional(),
        suite: z.union([z.string(), z.array(z.string())]).optional(),
      }),
    ),
  }),
});

/** Reads a CTRF report. Undefined for JSON that is not meant as one. */
export function readCtrf(text: string): TestReport | undefined {
  let value: unknown;
  try {
    value = parseCheckedJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    if (error instanceof DocumentTooHeavy) return { format: 'ctrf', problem: error.message };
    throw error;
  }
  const tests = (value as { results?: { tests?: unknown } }).results?.tests;
  if (!Array.isArray(tests)) return undefined;
  const read = Ctrf.safeParse(value);
  if (!read.success) {
    const [issue] = read.error.issues;
    return { format: 'ctrf', problem: `${issue?.path.join('.')}: ${issue?.message}` };
  }
  return {
    format: 'ctrf',
    tests: read.data.results.tests.map(({ name, status, duration, message, trace, suite }) => {
      const skipped = status === 'skipped' || status === 'pending';
      const shownMessage = message ?? (skipped ? status : undefined);
      return {
        name: [...(typeof suite === 'string' ? [suite] : (suite ?? [])), name].join(' > '),
        passed: status === 'passed' || skipped,
        ...(shownMessage !== undefined && { message: shownMessage }),
        ...(duration !== undefined && duration >= 0 && { durationMs: Math.round(duration) }),
        ...(trace !== undefined && { detail: trace }),
      };
    }),
  };
}
