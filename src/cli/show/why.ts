import { failuresOf } from '../../record/failures.ts';
import { oneLine } from '../../record/listing.ts';
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

function causeLines({ cause, harness }: TrialRecord): Value[] {
  if (!cause) return [];
  const { kind, phase, message, output = '' } = cause;
  return [
    text`${kind}, in ${phase}: ${lines(message)}`,
    ...(harness?.ended === 'timed-out' ? [text`the harness was stopped after ${harness.afterMs} ms`] : []),
    ...(output.trim() === '' ? [] : [excerpt(output, inStory)]),
  ];
}
