import { type Document, isScalar, type Scalar, visit, type YAMLError } from 'yaml';
import type { YamlProblem } from './yaml-bounds.ts';

/** What is wrong with a text that is not YAML, at the place where a person has to change it. */
export function syntaxProblem(text: string, document: Document, broken: YAMLError): YamlProblem {
  const [offset] = broken.pos;
  const braces = unquotedBraces(text, offset);
  if (braces) return braces;
  const quote = lastQuoted(document, offset);
  const said = broken.message.split('\n', 1)[0] ?? '';
  if (/^Missing closing .quote/.test(said))
    return { offset: quote?.from ?? offset, message: 'a quote begins here and is never closed' };
  // A text whose closing quote is missing ends at the next quote, which was meant to begin another text.
  if (
    quote &&
    text.slice(quote.from, quote.to).includes('\n') &&
    !text.slice(quote.to, offset).includes('\n')
  )
    return {
      offset: quote.from,
      message: `a quote begins here and ends lines below; is one missing? (${said})`,
    };
  if (/must be sufficiently indented and end with a/.test(said))
    return { offset, message: `${said.startsWith('Flow map') ? '{' : '['} is not closed before this line` };
  return { offset, message: said.replace(/^Nested mappings are not allowed in compact mappings$/, nested) };
}

const nested = 'this line is indented too far, or its value has a colon: quote such a text';

/** A text of YAML that begins with braces is a map, unless it is quoted. */
function unquotedBraces(text: string, offset: number): YamlProblem | undefined {
  // The error may be found at the beginning of the next line.
  for (const at of [offset, text.lastIndexOf('\n', offset - 1)]) {
    if (at < 0) continue;
    const start = text.lastIndexOf('\n', at - 1) + 1;
    const line = text.slice(start).split('\n', 1)[0] ?? '';
    const [, before = '', value] =
      /^(\s*(?:- )*(?:[\w-]+:\s+)?)(\{\{.*)$/.exec(line.slice(0, mostOfLine)) ?? [];
    if (value !== undefined)
      return {
        offset: start + before.length,
        message: `quote a text that begins with braces: '${value.trimEnd()}'`,
      };
  }
  return undefined;
}

/** Characters of a line that a message repeats. */
const mostOfLine = 200;

/** The last text in quotes that begins before an offset. */
function lastQuoted(document: Document, offset: number): { from: number; to: number } | undefined {
  let last: { from: number; to: number } | undefined;
  visit(document, (_, node) => {
    if (!isScalar(node) || !isQuoted(node) || !node.range) return;
    const [from, to] = node.range;
    if (from <= offset) last = { from, to };
  });
  return last;
}

function isQuoted({ type }: Scalar): boolean {
  return type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE';
}
