import { validatorRecords } from '../bounds/grading.ts';
import type { ReportedText } from '../contract/validation.ts';

/** A text as the record stores it. The middle is cut out if the text has more than `room` characters. */
export function captured(text: string, room: number = validatorRecords.bytes.kept): ReportedText {
  if (text.length <= room) return { text: text.toWellFormed(), truncated: false };
  const half = Math.floor(room / 2);
  const cut = text.length - 2 * half;
  const kept = `${text.slice(0, half)}\n[… ${cut} characters left out …]\n${text.slice(text.length - half)}`;
  return { text: kept.toWellFormed(), truncated: true };
}
