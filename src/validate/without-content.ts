import type { ReportedValidation } from '../contract/validation.ts';

/** For `capture: false`: timing and verdict stay, all text that grading produced goes. */
export function withoutContent(validation: ReportedValidation): ReportedValidation {
  const { message, input, output, error, logs, calls, ...rest } = validation;
  return {
    ...rest,
    ...(logs && { logs: logs.map(({ index, at }) => ({ index, at })) }),
    ...(calls && {
      calls: calls.map(({ index, startedAt, durationMs }) => ({ index, startedAt, durationMs })),
    }),
  };
}
