import type {
  CapturedText,
  Judgment,
  ReportedText,
  ReportedValidation,
  Validation,
} from '../../contract/validation.ts';

/**
 * Reported validations as run records carry them. A judgment belongs to the validation with its name (if
 * several have that name, the first judgment to the first validation). Any other judgment becomes its own
 * validation, of kind `judgment`.
 */
export function storedValidations(reported: ReportedValidation[], judgments: Judgment[]): Validation[] {
  const waiting = Map.groupBy(judgments, ({ name }) => name);
  const validations = reported.map((validation) =>
    storedValidation(validation, waiting.get(validation.name)?.shift()),
  );
  const alone = [...waiting.values()].flat();
  return validations.concat(
    alone.map((judgment, position) => judgmentAlone(judgment, reported.length + position)),
  );
}

function storedValidation(
  { calls, logs, input, output, error, ...same }: ReportedValidation,
  judgment: Judgment | undefined,
): Validation {
  return {
    ...same,
    kind: 'code',
    status: same.exitCode === undefined ? 'voided' : same.exitCode === 0 ? 'passed' : 'failed',
    input: captured(input),
    output: captured(output),
    error: captured(error),
    calls: calls?.map((call) => ({
      ...call,
      method: 'answer',
      input: captured(call.input),
      output: captured(call.output),
      error: captured(call.error),
    })),
    logs: logs?.map((log) => ({ ...log, level: 'stdout', value: captured(log.value) })),
    judgment,
  };
}

function captured(reported: ReportedText | undefined): CapturedText | undefined {
  return reported && { ...reported, format: 'text', state: 'captured' };
}

function judgmentAlone(judgment: Judgment, index: number): Validation {
  return {
    id: `judgment-${index}`,
    index,
    name: judgment.name,
    kind: 'judgment',
    status: judgmentStatus(judgment),
    durationMs: judgment.durationMs,
    judgment,
  };
}

/** undefined if the judgment has no threshold, so that nothing depends on it. */
function judgmentStatus({ score, threshold, error }: Judgment): Validation['status'] {
  if (error !== undefined) return 'voided';
  if (threshold === undefined) return undefined;
  if (score === undefined) return 'voided';
  return score >= threshold ? 'passed' : 'failed';
}
