import { Document, isMap, isSeq, Scalar, visit, type YAMLMap } from 'yaml';
import { exactYaml } from '../../suite/exact-yaml.ts';
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

/**
 * The text of a suite file. Texts of several lines are blocks. Comments say what Offsite does differently.
 */
export function suiteYaml({ id, variants, cases }: WrittenSuite): string {
  const contents = {
    suite: { id, prompt: '{{instruction}}' },
    trials: 1,
    variants,
    cases: cases.map(({ yaml }) => yaml),
  };
  const document = new Document(contents, { aliasDuplicateObjects: false });
  document.commentBefore = ' Written by `offsite tasks import`. Change it as you like: docs/suites.md.';
  const list = document.get('cases');
  if (isSeq(list))
    for (const [index, item] of list.items.entries())
      if (isMap(item)) describe(item, cases[index]?.notes ?? []);
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && deceiving.test(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  const text = document.toString(exactYaml);
  return text.replaceAll(new RegExp(deceiving, 'gu'), (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}

/** Says above the case what Offsite ignores or does in another way. */
function describe(item: YAMLMap, notes: readonly Note[]): void {
  item.spaceBefore = true;
  const remarks = notes.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  if (remarks.length > 0) item.commentBefore = [...new Set(remarks)].map(asComment).join('\n');
}

/** Characters that change the order in which a text is shown, and characters that no editor shows. */
const deceiving = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u;

/** A comment ends with its line. */
function asComment(text: string): string {
  const plain = text.replaceAll(new RegExp(`\\p{Cc}|${deceiving.source}`, 'gu'), ' ');
  return ` note: ${plain}`;
}
