import type { CapturedText, ReportedText, ReportedValidation, Validation } from '../contract/validation.ts';
import { captured } from './texts.ts';

/** A text as the full record carries it, cut as {@link captured} cuts. */
export function capturedText(text: string, format: 'text' | 'json' = 'text'): CapturedText {
  return { ...captured(text), format, state: 'captured' };
}

/**
 * What a report may say of a validation: the specification leaves kind, status, formats, states, levels,
 * methods, judgment and metadata out.
 */
export function reportedForm(validation: Validation): ReportedValidation {
  const { kind, status, judgment, metadata, input, output, error, calls, logs, ...same } = validation;
  return {
    ...same,
    ...reportedTexts({ input, output, error }),
    ...(calls && {
      calls: calls.map(({ method, input, output, error, ...call }) => ({
        ...call,
        ...reportedTexts({ input, output, error }),
      })),
    }),
    ...(logs && {
      logs: logs.map(({ level, value, ...log }) => ({ ...log, ...reportedTexts({ value }) })),
    }),
  };
}

type Texts<Name extends string> = Partial<Record<Name, CapturedText | undefined>>;

/** Texts that were left out on purpose are not there at all in a report. */
function reportedTexts<Name extends string>(texts: Texts<Name>): Partial<Record<Name, ReportedText>> {
  const kept = Object.entries(texts as Record<string, CapturedText | undefined>).flatMap(([name, text]) =>
    text === undefined || text.state === 'omitted'
      ? []
      : [[name, { text: text.text, truncated: text.truncated ?? false }]],
  );
  return Object.fromEntries(kept);
}

/**
 * For `capture: false`: timing, verdict and scores stay, all text that grading produced goes, and says that
 * it was there.
 */
export function withoutContent(validation: Validation): Validation {
  const { message, judgment, input, output, error, metadata, calls, logs, ...rest } = validation;
  return {
    ...rest,
    ...omitted({ input, output, error, metadata }),
    ...(judgment && { judgment: judgmentWithoutContent(judgment) }),
    ...(calls && {
      calls: calls.map(({ input, output, error, ...call }) => ({
        ...call,
        ...omitted({ input, output, error }),
      })),
    }),
    ...(logs && { logs: logs.map(({ value, ...log }) => ({ ...log, ...omitted({ value }) })) }),
  };
}

/** The reason and the error quote the work; the chosen word is the author's own. */
export function judgmentWithoutContent<J extends { reason?: unknown; error?: unknown }>({
  reason,
  error,
  ...rest
}: J) {
  return rest;
}

function omitted<Name extends string>(texts: Texts<Name>): Texts<Name> {
  const gone = Object.entries(texts as Record<string, CapturedText | undefined>).flatMap(([name, text]) =>
    text === undefined ? [] : [[name, { text: '', format: text.format, state: 'omitted' }]],
  );
  return Object.fromEntries(gone);
}
