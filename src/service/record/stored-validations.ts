import type {
  CapturedText,
  Judgment,
  ReportedText,
  ReportedValidation,
  Validation,
} from '../../contract/validation.ts';

/** Reported validations and judgments as run records carry them. */
export function storedValidations(reported: ReportedValidation[], judgments: Judgment[]): Validation[] {
  return withJudgments(reported.map(storedValidation), judgments);
}

/**
 * Gives each judgment to the validation with its name (if several have that name, the first judgment to the
 * first validation). Any other judgment becomes its own validation, of kind `judgment`.
 */
export function withJudgments(validations: Validation[], judgments: Judgment[]): Validation[] {
  const waiting = Map.groupBy(judgments, ({ name }) => name);
  const judged = validations.map((validation) => ({
    ...validation,
    judgment: waiting.get(validation.name)?.shift() ?? validation.judgment,
  }));
  const alone = [...waiting.values()].flat();
  return [
    ...judged,
    ...alone.map((judgment, position) => judgmentAlone(judgment, validations.length + position)),
  ];
}

function storedValidation({ calls, logs, input, output, error, ...same }: ReportedValidation): Validation {
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
