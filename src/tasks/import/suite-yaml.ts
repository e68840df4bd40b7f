import { Document, isMap, isSeq, type YAMLMap } from 'yaml';
import type { Note } from '../supported.ts';

/** A case of the suite to write. */
export interface WrittenCase {
  yaml: Record<string, unknown>;
  notes: readonly Note[];
}

export interface WrittenSuite {
  id: string;
  variants: readonly Record<string, unknown>[];
  cases: readonly WrittenCase[];
}

/** The text of a suite file: texts of several lines as blocks, and a comment where a task differs here. */
export function suiteYaml({ id, variants, cases }: WrittenSuite): string {
  const document = new Document({
    suite: { id, prompt: '{{instruction}}' },
    trials: 1,
    variants,
    cases: cases.map(({ yaml }) => yaml),
  });
  document.commentBefore = ' Written by `offsite import`. Change it as you like: docs/suites.md.';
  const list = document.get('cases');
  if (isSeq(list))
    for (const [index, item] of list.items.entries())
      if (isMap(item)) describe(item, cases[index]?.notes ?? []);
  return document.toString({ lineWidth: 0, blockQuote: 'literal' });
}

/** Says above the case what Offsite ignores or does in another way. */
function describe(item: YAMLMap, notes: readonly Note[]): void {
  item.spaceBefore = true;
  const told = notes.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  if (told.length > 0) item.commentBefore = [...new Set(told)].map(asComment).join('\n');
}

/** A comment ends with its line. */
function asComment(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no invisible character gets into the file
  return ` note: ${text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e]+/g, ' ')}`;
}
