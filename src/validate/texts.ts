import type { ReportedText } from '../contract/validation.ts';

/** Characters of a captured text that are kept: its beginning, which names what it is about, and its end, which says how it went. */
export const capturedCharacters = 64 * 1024;

/** A text as the record carries it, cut in the middle where it has more than `room` characters. */
export function captured(text: string, room: number = capturedCharacters): ReportedText {
  if (text.length <= room) return { text: text.toWellFormed(), truncated: false };
  const half = Math.floor(room / 2);
  const cut = text.length - 2 * half;
  const kept = `${text.slice(0, half)}\n[… ${cut} characters left out …]\n${text.slice(text.length - half)}`;
  return { text: kept.toWellFormed(), truncated: true };
}
