import { isMap, isSeq, parseDocument } from 'yaml';
import { OffsiteError } from '../../base/offsite-error.ts';
import { SuiteFile } from '../../suite/suite-file.ts';
import { yamlFileOf } from '../../suite/yaml-file.ts';

/**
 * The text of a suite with a case at the end of its list. All else stays as it is written.
 *
 * @param item the case as an item of a list, not indented
 */
export function withCase(text: string, item: string, file: string): string {
  const changed = insertedInto(text, item);
  // Parses the new text as well, so that a wrong insertion is not written.
  const cases =
    changed === undefined ? [] : (yamlFileOf(changed, { file, schema: SuiteFile }).value.cases ?? []);
  const before = yamlFileOf(text, { file, schema: SuiteFile }).value.cases ?? [];
  if (changed === undefined || cases.length !== before.length + 1)
    throw new OffsiteError(`${file} has no list of cases in which a case can be written`, {
      code: 'SUITE_NOT_CHANGED',
      kind: 'input',
      hint: 'Write `cases:` as a list with one item a line, as in docs/suites.md.',
    });
  return changed;
}

function insertedInto(text: string, item: string): string | undefined {
  const { contents } = parseDocument(text, { uniqueKeys: false });
  if (!isMap(contents)) return undefined;
  const cases = contents.get('cases', true);
  const ended = text === '' || text.endsWith('\n') ? text : `${text}\n`;
  if (cases === undefined && !contents.flow) return `${ended}\ncases:\n${indented(item, 2)}`;
  const last = isSeq(cases) ? cases.items.at(-1) : undefined;
  if (!isSeq(cases) || cases.flow || !cases.range || !isMap(last) || !last.range) return undefined;
  const column = cases.range[0] - text.lastIndexOf('\n', cases.range[0] - 1) - 1;
  // The end of the last value may be in the middle of its line, before a comment.
  const end = last.range[1];
  const atLine = end === 0 || text[end - 1] === '\n' ? end : text.indexOf('\n', end) + 1;
  const at = atLine === 0 ? ended.length : atLine;
  return `${ended.slice(0, at)}\n${indented(item, column)}${ended.slice(at)}`;
}

function indented(item: string, column: number): string {
  return item.replaceAll(/^(?=.)/gm, ' '.repeat(column));
}
