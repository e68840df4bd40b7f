import { failuresOf } from '../../record/failures.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { excerpt, lines, type Printable, text, type Value } from '../../text/printable.ts';
import { firstOf, inStory, section } from './layout.ts';

/** How many reasons a story names before its evidence. */
const named = 3;

/** Why a trial did not pass; undefined if it passed. */
export function whySection(record: TrialRecord): Printable | undefined {
  const body = [...causeLines(record), ...firstOf(failuresOf(record), named, oneLine)];
  return body.length === 0 ? undefined : section('why', '', body);
}

/** Why a trial did not pass, in one line; empty if it passed. */
export function whyText(record: TrialRecord): string {
  const { cause } = record;
  if (cause) return `${cause.kind}, in ${cause.phase}: ${oneLine(cause.message)}`;
  const [first, ...more] = failuresOf(record);
  if (first === undefined) return '';
  return more.length === 0 ? oneLine(first) : `${oneLine(first)} (and ${more.length} more)`;
}

function causeLines({ cause, harness }: TrialRecord): Value[] {
  if (!cause) return [];
  const { kind, phase, message, output = '' } = cause;
  return [
    text`${kind}, in ${phase}: ${lines(message)}`,
    ...(harness?.ended === 'timed-out' ? [text`the harness was stopped after ${harness.afterMs} ms`] : []),
    ...(output.trim() === '' ? [] : [excerpt(output, inStory)]),
  ];
}

/** A reason on one line. Causes may have several. */
function oneLine(reason: string): string {
  const [line = ''] = reason.trim().split('\n');
  const most = inStory.characters;
  return line.length > most ? `${line.slice(0, most).toWellFormed()}…` : line;
}
