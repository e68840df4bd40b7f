import { labelOf } from '../../ledger/find-target.ts';
import { failureLines } from '../../record/failures.ts';
import { shellWord } from '../../text/escape.ts';
import {
  type Excerpt,
  type Optional,
  ours,
  type Printable,
  present,
  stack,
  styled,
  text,
  type Value,
} from '../../text/printable.ts';
import { duration, plural } from '../../text/quantities.ts';

/** A part of what is shown: its title, what the title counts, and indented lines. */
export function section(title: string, counts: string, body: readonly Optional<Value>[]): Printable {
  const head = text`${styled('bold', ours(title))}${ours(counts === '' ? '' : `  ${counts}`)}`;
  return stack([head, ...present(body).map((value) => text`  ${value}`)]);
}

export const dim = (own: string) => styled('dim', ours(own));

/** How long something took, behind what it is; nothing if that is not known. */
export function tookText(durationMs: number | undefined): Printable {
  return durationMs === undefined ? ours('') : dim(`  ${duration(durationMs)}`);
}

/** `case · variant #0` */
export function trialName(trial: { caseId: string; variant: string; ordinal: number }): Printable {
  return text`${trial.caseId} · ${trial.variant} #${trial.ordinal}`;
}

/** Sections with an empty line between them. */
export function page(sections: readonly Optional<Printable>[]): Printable {
  return stack(present(sections).flatMap((one, index) => (index === 0 ? [one] : [ours(''), one])));
}

/** The first items, and a line with how many more there are. */
export function firstOf<Item>(
  items: readonly Item[],
  most: number,
  shown: (item: Item) => Value,
  more: (count: number) => Value = (count) => dim(`… and ${count} more`),
): Value[] {
  if (items.length <= most + 1) return items.map(shown);
  return [...items.slice(0, most).map(shown), more(items.length - most)];
}

/** The size of a text that the user asked for in full. Even a line of megabytes stays readable. */
export const inFull: Excerpt = { first: 5_000, last: 5_000, characters: 10_000 };

/** The size of a text in a story, such as an output. Lines that say what failed are always shown. */
export const inStory: Excerpt = { first: 4, last: 8, characters: 160, besides: failureLines };

/** The first line of a text. */
export function firstLine(given: string): string {
  const [first = '', ...more] = given.trim().split('\n');
  return more.length > 0 ? `${first} …` : first;
}

export function mark(verdict: 'passed' | 'failed' | 'void'): Printable {
  if (verdict === 'passed') return styled('green', ours('✓'));
  return verdict === 'failed' ? styled('red', ours('✗')) : styled('yellow', ours('○'));
}

/** A trial as `offsite show` takes it, safe to paste into a shell. */
export function wordsFor(
  trial: { caseId: string; variant: string; ordinal: number },
  shortBatch?: string | undefined,
): string {
  const batch = shortBatch === undefined ? '' : `${shortBatch}:`;
  return shellWord(`${batch}${labelOf(trial)}#${trial.ordinal}`);
}

/** Said first, since what follows is about the other results only; undefined if all can be read. */
export function unreadText(count: number): Printable | undefined {
  if (count === 0) return undefined;
  const are = count === 1 ? 'is' : 'are';
  return text`${plural(count, 'result')} cannot be read and ${ours(are)} not counted: offsite data check`;
}
