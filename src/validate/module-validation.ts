import type { Validation } from '../contract/validation.ts';
import type { CallsOfValidation } from './model-calls.ts';
import { capturedText } from './record.ts';
import type { SandboxedValidation } from './sandboxed/records.ts';
import { captured } from './texts.ts';

/** The record of a module's validation, with its requests to models and their answers. */
export function moduleValidation(
  record: SandboxedValidation,
  { calls, judgment, failed }: CallsOfValidation,
): Omit<Validation, 'id' | 'index'> {
  // If a validator continued without an answer that it requested, it has not measured what it should.
  const status = failed ? 'voided' : record.status;
  const texts = {
    ...(record.input && { input: capturedText(record.input.text, record.input.format) }),
    ...(record.output && { output: capturedText(record.output.text, record.output.format) }),
    ...(record.error !== undefined && { error: capturedText(record.error) }),
    ...(record.metadata !== undefined && { metadata: capturedText(record.metadata, 'json') }),
  };
  return {
    name: record.name,
    kind: 'code',
    status,
    startedAt: record.startedAt,
    durationMs: record.durationMs,
    ...(record.message !== undefined && { message: captured(record.message).text }),
    ...(status !== 'voided' && { exitCode: status === 'passed' ? 0 : 1 }),
    truncated: record.logsCut || Object.values(texts).some(({ truncated }) => truncated === true),
    ...texts,
    calls,
    logs: record.logs.map(({ at, level, text }, index) => ({ index, at, level, value: capturedText(text) })),
    ...(judgment && { judgment }),
  };
}
