import { z } from 'zod';
import { validatorRecords } from '../bounds/grading.ts';
import { DocumentTooHeavy, parseCheckedJson } from '../parse-json.ts';
import type { SandboxedRecord } from './sandboxed/records.ts';

/** The list of problems may be as long as the record, so only the first ones are shown. */
const shownIssues = 5;

const Text = z.object({ text: z.string(), format: z.enum(['text', 'json']) });
const Id = z.int().min(0);
const Path = z.string().max(validatorRecords.bytes.path);

const Options = z.object({
  cwd: Path.optional(),
  env: z.record(z.string(), z.string()).optional(),
  input: z.string().optional(),
  timeout: z.number().positive().optional(),
});

/**
 * What the validator's process may send, one record per line. `sandboxed/records.ts` has the same types for
 * that process.
 */
const Shape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('broken'), message: z.string() }),
  z.object({ kind: z.literal('begin'), name: z.string() }),
  z.object({ kind: z.literal('end') }),
  z.object({
    kind: z.literal('ask'),
    id: Id,
    validation: z.string(),
    method: z.enum(['answer', 'judge']),
    request: z.unknown(),
  }),
  z.object({
    kind: z.literal('run'),
    id: Id,
    command: z.string().min(1),
    args: z.array(z.string()),
    options: Options,
  }),
  z.object({ kind: z.literal('read'), id: Id, path: Path }),
  z.object({ kind: z.literal('files'), id: Id }),
  z.object({ kind: z.literal('end-work'), id: Id }),
  z.object({
    kind: z.literal('validation'),
    name: z.string(),
    startedAt: z.number().nonnegative(),
    durationMs: z.number().nonnegative(),
    status: z.enum(['passed', 'failed', 'voided']),
    message: z.string().optional(),
    input: Text.optional(),
    output: Text.optional(),
    error: z.string().optional(),
    metadata: z.string().optional(),
    logs: z
      .array(z.object({ at: z.number(), level: z.string(), text: z.string() }))
      .max(validatorRecords.count.logs),
    logsCut: z.boolean(),
  }),
]);

/** Returns the record that a line holds, or what is wrong with it. Never throws. */
export function readRecord(line: string): SandboxedRecord | { problem: string } {
  let value: unknown;
  try {
    value = parseCheckedJson(line);
  } catch (error) {
    return { problem: error instanceof DocumentTooHeavy ? error.message : 'it is not JSON' };
  }
  const read = Shape.safeParse(value);
  if (read.success) return read.data as SandboxedRecord;
  return {
    problem: read.error.issues
      .slice(0, shownIssues)
      .map(({ path, message }) => `${path.join('.')}: ${message}`)
      .join('; '),
  };
}
