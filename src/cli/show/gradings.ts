import type { CheckBeside } from '../../record/checks-beside.ts';
import type { LaterGrading } from '../../record/later-grading.ts';
import { lines, ours, type Printable, styled, text, type Value } from '../../text/printable.ts';
import { minute, plural } from '../../text/quantities.ts';
import { firstLine, firstOf, mark, section } from './layout.ts';

/** How many checks of a grading are shown. */
const named = 8;

/** The later gradings of a trial beside the first one; undefined if there are none. */
export function gradingsSection(first: string, gradings: readonly LaterGrading[]): Printable | undefined {
  if (gradings.length === 0) return undefined;
  const body = gradings.toReversed().flatMap((grading) => gradingLines(first, grading));
  return section('graded again', plural(gradings.length, 'time'), body);
}

function gradingLines(
  first: string,
  { gradedAt, verdict, suite, notes, cause, checks, unreadable }: LaterGrading,
): Value[] {
  const change = verdict === first ? ours('the same') : text`was ${ours(first)}`;
  const by = suite === undefined ? ours('as planned') : text`by ${suite}`;
  const changed = checks.filter((check) => check.changed);
  return [
    text`${mark(verdict)} ${ours(verdict)}, ${change}  ${styled('dim', text`${ours(minute(gradedAt))} ${by}`)}`,
    ...(unreadable === undefined ? [] : [text`  ${unreadable}`]),
    ...(cause ? [text`  ${cause.kind}, in ${cause.phase}: ${lines(cause.message)}`] : []),
    ...firstOf(changed, named, checkLine),
    ...notes.map((note) => text`  note: ${note}`),
  ];
}

function checkLine({ kind, name, was = 'not there', now = 'not there' }: CheckBeside): Printable {
  return text`  ${ours(`${kind}:`)} ${firstLine(name)}  ${was} → ${now}`;
}
