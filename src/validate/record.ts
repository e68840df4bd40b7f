import { validatorRecords } from '../bounds/grading.ts';
import type { CapturedText, ReportedText, ReportedValidation, Validation } from '../contract/validation.ts';

/** A text as the full record stores it, shortened by {@link captured}. */
export function capturedText(text: string, format: 'text' | 'json' = 'text'): CapturedText {
  return { ...captured(text), format, state: 'captured' };
}

/**
 * What a report may contain of a validation. The specification has no kind, status, formats, states, levels,
 * methods, judgment or metadata. It does not say which of the other fields a service requires, so a
 * validation without calls or logs has empty lists.
 */
export function reportedForm(validation: Validation): ReportedValidation {
  const { kind, status, judgment, metadata, input, output, error, calls, logs, ...same } = validation;
  return {
    truncated: false,
    ...same,
    ...reportedTexts({ input, output, error }),
    calls: (calls ?? []).map(({ method, input, output, error, ...call }) => ({
      ...call,
      ...reportedTexts({ input, output, error }),
    })),
    logs: (logs ?? []).map(({ level, value, ...log }) => ({ ...log, ...reportedTexts({ value }) })),
  };
}

type Texts<Name extends string> = Partial<Record<Name, CapturedText | undefined>>;

/** A report does not contain texts that were omitted on purpose. */
function reportedTexts<Name extends string>(texts: Texts<Name>): Partial<Record<Name, ReportedText>> {
  const kept = Object.entries(texts as Record<string, CapturedText | undefined>).flatMap(([name, text]) =>
    text === undefined || text.state === 'omitted'
      ? []
      : [[name, { text: text.text, truncated: text.truncated ?? false }]],
  );
  return Object.fromEntries(kept);
}

/**
 * For `capture: false`: keeps timing, verdict and scores. Replaces each text that grading produced by a mark
 * that it was omitted.
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

/**
 * Removes the reason and the error, because they quote the work. Keeps the chosen word, because the author
 * wrote it.
 */
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

/** A text as the record stores it. The middle is cut out if the text has more than `room` characters. */
export function captured(text: string, room: number = validatorRecords.bytes.kept): ReportedText {
  if (text.length <= room) return { text: text.toWellFormed(), truncated: false };
  const half = Math.floor(room / 2);
  const cut = text.length - 2 * half;
  const kept = `${text.slice(0, half)}\n[… ${cut} characters left out …]\n${text.slice(text.length - half)}`;
  return { text: kept.toWellFormed(), truncated: true };
}

interface MatchedValidations {
  /** In the manifest's order, then validations that the manifest does not name. */
  found: Validation[];
  /** Names in the manifest for which the validator has no validation. */
  missing: string[];
}

/** Gives each validation its index: the manifest's index for its name, otherwise the next free one. */
export function matchManifest(
  validations: readonly Omit<Validation, 'id' | 'index'>[],
  manifest: readonly { index: number; name: string }[],
): MatchedValidations {
  const declared = new Map(manifest.map(({ index, name }) => [name, index]));
  let next = Math.max(-1, ...declared.values()) + 1;
  const found = validations.map((validation) => {
    const index = declared.get(validation.name) ?? next++;
    // Test reports can repeat a name. The second validation of a name counts as an extra one.
    declared.delete(validation.name);
    return { id: `validation-${index}`, index, ...validation };
  });
  const names = new Set(validations.map(({ name }) => name));
  return {
    found: found.toSorted((a, b) => a.index - b.index),
    missing: manifest.filter(({ name }) => !names.has(name)).map(({ name }) => name),
  };
}
