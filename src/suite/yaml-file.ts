import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  parseDocument,
  type Scalar,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import type { z } from 'zod';
import { messageOf } from '../base/offsite-error.ts';
import { yamlFiles } from '../bounds/suite.ts';
import { printPath } from '../contract/errors.ts';
import { BadFile, decodedText, type FileIssue, hasNul, issueIn, positionInText } from './file-issues.ts';
import { type Reach, type ReadOptions, readFile } from './read-file.ts';
import { type FileSchema, schemaProblems } from './schema-problems.ts';

/** The keys and indices that lead to a value of a file. */
export type Path = readonly (string | number)[];

/** A YAML file that matches a schema, with a way to find the position of a value. */
export interface YamlFile<Value> {
  file: string;
  value: Value;
  /** Returns an issue at the position of `path`, or of its nearest parent that is in the file. */
  issue(path: Path, message: string): FileIssue;
}

interface YamlOptions {
  reach?: Reach | undefined;
  /** Whether the key `<<` merges other maps into its own, as in YAML 1.1. */
  merge?: boolean | undefined;
  /** What the other files of a project are called, with their schemas. */
  others?: FileSchema['others'] | undefined;
}

/**
 * Reads a YAML file and checks it by `schema`. Throws {@link BadFile} with every problem and its position, or
 * an `input` error if the file cannot be read.
 */
export function readYamlFile<Schema extends z.ZodType>(
  file: string,
  schema: Schema,
  options: YamlOptions = {},
): YamlFile<z.output<Schema>> {
  const text = readText(file, { maximumBytes: yamlFiles.bytes.file, reach: options.reach });
  return yamlFileOf(text, { file, schema, ...options });
}

/**
 * The same for the text of a file, which need not exist. Throws {@link BadFile} with every problem.
 */
export function yamlFileOf<Schema extends z.ZodType>(
  text: string,
  { file, schema, merge = false, others }: { file: string; schema: Schema } & YamlOptions,
): YamlFile<z.output<Schema>> {
  const refuse = ({ offset, message }: YamlProblem) =>
    new BadFile([issueIn(file, message, positionInText(text, offset))]);
  const unbounded = boundsProblem(text);
  if (unbounded) throw refuse(unbounded);
  const lines = new LineCounter();
  // Repeated keys are checked below, because this parser's check takes quadratic time.
  const options = { lineCounter: lines, prettyErrors: false, merge, uniqueKeys: false };
  const document = parseDocument(text, options);
  // Errors after the first one are mostly consequences of it.
  const [broken] = document.errors;
  const problem = broken ? syntaxProblem(text, document, broken) : documentProblem(document);
  if (problem) throw refuse(problem);
  const placeAt = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const issue = (path: Path, message: string): FileIssue => ({
    ...issueIn(file, message, placeAt(offsetOf(document, path))),
    path: printPath(path),
  });
  const given = toValue(document, file);
  const result = schema.safeParse(given, { reportInput: true });
  if (!result.success) {
    const issues = schemaProblems(result.error, { schema, document: given, others });
    const shown = issues.slice(0, yamlFiles.count.issues).map(({ path, message }) => issue(path, message));
    const more = issues.length - shown.length;
    if (more > 0) shown.push(issueIn(file, `and ${more} more`, { line: lines.lineStarts.length }));
    throw new BadFile(shown);
  }
  return { file, value: result.data, issue };
}

/** Returns the text of a user's file. Throws the same errors as {@link readFile} and {@link decodedText}. */
export function readText(file: string, options?: ReadOptions): string {
  return decodedText(file, readFile(file, options).content);
}

function toValue(document: Document, file: string): unknown {
  try {
    // The expanded size of its aliases is already checked.
    return document.toJS({ maxAliasCount: -1 });
  } catch (error) {
    // For example, an alias without an anchor.
    throw new BadFile([issueIn(file, messageOf(error))]);
  }
}

function offsetOf(document: Document, path: Path): number {
  for (let length = path.length; length > 0; length--) {
    const parent = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true);
    const key = path[length - 1];
    if (isMap(parent)) {
      // The key's position is more useful than its value's, above all for an unknown key.
      const pair = parent.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === key);
      if (pair && isNode(pair.key) && pair.key.range) return pair.key.range[0];
    }
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return isNode(document.contents) && document.contents.range ? document.contents.range[0] : 0;
}

/** What is wrong with a text that is not YAML, at the place where a person has to change it. */
function syntaxProblem(text: string, document: Document, broken: YAMLError): YamlProblem {
  const [offset] = broken.pos;
  const braces = unquotedBraces(text, offset);
  if (braces) return braces;
  const quote = lastQuoted(document, offset);
  const variable = /^\$\{\s*(\w+)\s*\}/.exec(text.slice(Math.max(0, offset - 1)));
  if (variable)
    return {
      offset: Math.max(0, offset - 1),
      message: `quote a text with braces: "${variable[0]}"; where a variable is named, write ${variable[1]} alone`,
    };
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
  const own = said
    .replace(/^Nested mappings are not allowed in compact mappings$/, nested)
    .replace(/^Sequence item without - indicator$/, '$& (check the indentation)')
    .replace(/^Tabs are not allowed as indentation$/, tab)
    .replace(/^Block scalar lines must not be less indented.*/, (words) =>
      /^ *\t/.test(text.slice(text.lastIndexOf('\n', offset - 1) + 1)) ? tab : words,
    );
  return { offset, message: own };
}

const tab = 'a tab cannot indent a line: use spaces';

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
    // Inside `{key: about {{name}}}`, braces begin a map wherever they stand.
    const [inner] = /\{\{[\w.-]+\}\}/.exec(text.slice(start, start + mostOfLine)) ?? [];
    if (value !== undefined)
      return {
        offset: start + before.length,
        message: `quote a text that begins with braces: '${value.trimEnd()}'`,
      };
    if (inner !== undefined && line.includes(inner) && !/^[^{]*$/.test(line.slice(0, line.indexOf(inner))))
      return { offset: start + line.indexOf(inner), message: `quote the text that has ${inner}` };
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

/** Options of the library's `toString` with which it writes YAML that is read as exactly the same texts. */
export const exactYaml = {
  lineWidth: 0,
  blockQuote: 'literal',
  // Over several lines, the library writes some texts with carriage returns in a way that is read as another
  // text.
  doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY,
} as const;

/** A part of a YAML text that Offsite refuses to read, with its offset. */
interface YamlProblem {
  offset: number;
  message: string;
}

/** Checks the depth and the size of a text before any recursive function reads it. */
export function boundsProblem(text: string): YamlProblem | undefined {
  const parser = new Parser();
  let tokens = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const _ of parser.next(lexeme)) {
      // The parsed tokens are not needed.
    }
    if (parser.stack.length > yamlFiles.count.depth)
      return {
        offset: parser.offset,
        message: `is nested too deep: more than ${yamlFiles.count.depth} levels`,
      };
    if (++tokens > yamlFiles.count.tokens)
      return { offset: parser.offset, message: `holds more than ${yamlFiles.count.tokens} signs and values` };
  }
  return undefined;
}

/**
 * Finds repeated keys, texts with the character NUL, and aliases that contain themselves or expand to too
 * much.
 */
function documentProblem(document: Document): YamlProblem | undefined {
  const anchors = new Map<string, Anchor>();
  let problem: YamlProblem | undefined;
  const refuse = (node: Node, message: string): 0 => {
    problem ??= { offset: node.range?.[0] ?? 0, message };
    return 0;
  };

  /** The size of a node after its aliases are expanded. */
  function weigh(node: unknown): number {
    if (problem || !isNode(node)) return 0;
    if (isAlias(node)) return weighAlias(node.source, node);
    const anchor: Anchor | undefined = node.anchor === undefined ? undefined : { weight: undefined };
    if (anchor && node.anchor !== undefined) anchors.set(node.anchor, anchor);
    let weight = yamlFiles.bytes.value;
    if (isScalar(node)) {
      weight += String(node.source ?? '').length;
      if (typeof node.value === 'string' && node.value.includes('\0')) refuse(node, hasNul);
    }
    if (isMap(node)) refuseRepeated(node.items.map(({ key }) => key));
    if (isCollection(node)) {
      for (const item of node.items) {
        weight += isPair(item) ? weigh(item.key) + weigh(item.value) : weigh(item);
        if (weight > yamlFiles.bytes.expanded) return refuse(node, 'expands to too much through its aliases');
      }
    }
    if (isMap(node)) refuseCollections(node);
    if (anchor) anchor.weight = weight;
    return weight;
  }

  function weighAlias(source: string, node: Node): number {
    const anchor = anchors.get(source);
    if (!anchor) return refuse(node, `*${source} has no anchor: there is no &${source} before it`);
    return anchor.weight ?? refuse(node, `*${source} contains itself`);
  }

  /** A key that is a map is mostly a variable without quotes: `{{name}}` is a map in a map. */
  function refuseCollections(map: YAMLMap): void {
    for (const { key } of map.items) {
      if (!isCollection(key)) continue;
      const inner = isMap(key) && key.items.length === 1 ? key.items[0]?.key : undefined;
      const name = isScalar(inner) ? String(inner.value).slice(0, mostOfName) : undefined;
      if (map.flow && name !== undefined) refuse(map, `quote a text that begins with braces: "{{${name}}}"`);
      else refuse(key, 'a key must be a text, not a list or a map');
    }
  }

  function refuseRepeated(keys: readonly unknown[]): void {
    const seen = new Set<unknown>();
    for (const key of keys) {
      if (!isScalar(key)) continue;
      if (seen.has(key.value)) refuse(key, 'this key is written twice');
      seen.add(key.value);
    }
  }

  weigh(document.contents);
  return problem;
}

/** Characters of a name that a message repeats. */
const mostOfName = 60;

interface Anchor {
  /** Undefined while the anchor's value is still being weighed. */
  weight: number | undefined;
}
