import { isDeepStrictEqual } from 'node:util';
import {
  Document,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml';
import { exactYaml } from './yaml-file.ts';

/**
 * Puts a model into the text of a configuration. Everything else stays as it is: comments, order and the
 * way it is written.
 *
 * @param text the text of a configuration that is valid; may be empty
 * @param name replaces the model of this name if there is one
 */
export function withModel(text: string, name: string, model: object): string {
  const document = parseDocument(text, { uniqueKeys: false });
  const before = (document.toJS({ maxAliasCount: -1 }) ?? {}) as { models?: Record<string, unknown> };
  const after = { ...before, models: { ...before.models, [name]: model } };
  const inserted = insertedInto(text, document, name, model);
  if (inserted !== undefined && isDeepStrictEqual(readAgain(inserted), after)) return inserted;
  // A file into which no lines can be inserted is written anew. Comments stay, but the library sets the
  // spaces.
  if (isMap(document.contents) && document.contents.items.length === 0) document.contents.flow = false;
  document.setIn(['models', name], document.createNode(model));
  const written = document.toString({ ...exactYaml, blockQuote: true });
  if (!isDeepStrictEqual(readAgain(written), after)) throw new Error('the model cannot be put into the file');
  return written;
}

/** A configuration in which there is only this model. */
export function modelText(name: string, model: object): string {
  return block({ models: { [name]: model } });
}

/** Undefined if the file has a form in which lines cannot be inserted. */
function insertedInto(text: string, document: Document, name: string, model: object): string | undefined {
  const lineEnd = text.includes('\r\n') ? '\r\n' : '\n';
  const insert = (from: number, to: number, own: string) => {
    const before = text.slice(0, from);
    const begin = before === '' || before.endsWith('\n') ? '' : lineEnd;
    return `${before}${begin}${own.replaceAll('\n', lineEnd)}${text.slice(to)}`;
  };
  const { contents } = document;
  if (contents === null) return insert(text.length, text.length, modelText(name, model));
  if (!isMap(contents) || contents.flow) return undefined;
  const models = pairOf(contents, 'models');
  if (!models) return insert(text.length, text.length, modelText(name, model));
  const { value } = models;
  if (value === null || (isScalar(value) && value.value === null)) {
    const at = lineAfter(text, endOf(models));
    return insert(at, at, indented({ [name]: model }, 2));
  }
  const [first] = isMap(value) && !value.flow ? value.items : [];
  const last = isMap(value) ? value.items.at(-1) : undefined;
  if (!first || !last) return undefined;
  const indent = columnOf(text, startOf(first));
  const old = isMap(value) ? pairOf(value, name) : undefined;
  const from = old ? startOf(old) - indent : lineAfter(text, endOf(last));
  const to = old ? lineAfter(text, endOf(old)) : from;
  return insert(from, to, indented({ [name]: model }, indent));
}

function pairOf(map: YAMLMap, key: string): Pair | undefined {
  return map.items.find((pair) => isScalar(pair.key) && pair.key.value === key);
}

function startOf({ key }: Pair): number {
  return isNode(key) ? (key.range?.[0] ?? 0) : 0;
}

/** The offset at which the last value or key of a pair ends, without comments after it. */
function endOf(pair: Pair): number {
  let node: unknown = pair;
  while (true) {
    if (isPair(node)) node = isEmpty(node.value) ? node.key : node.value;
    else if ((isMap(node) || isSeq(node)) && !node.flow && node.items.length > 0) node = node.items.at(-1);
    else return isNode(node) ? ((node as Node).range?.[1] ?? 0) : 0;
  }
}

function isEmpty(value: unknown): boolean {
  return value === null || (isScalar(value) && value.value === null && value.source === '');
}

/** The beginning of the line after `at`; `at` itself if it begins a line. */
function lineAfter(text: string, at: number): number {
  if (text[at - 1] === '\n') return at;
  const end = text.indexOf('\n', at);
  return end === -1 ? text.length : end + 1;
}

function columnOf(text: string, at: number): number {
  return at - (text.lastIndexOf('\n', at - 1) + 1);
}

function indented(value: object, spaces: number): string {
  return block(value).replace(/^(?=.)/gm, ' '.repeat(spaces));
}

/** Lists of names are in one line. */
function block(value: object): string {
  const document = new Document(value);
  visit(document, {
    Seq: (_key, list) => {
      list.flow = true;
    },
  });
  return document.toString({ ...exactYaml, blockQuote: true, flowCollectionPadding: false });
}

function readAgain(text: string): unknown {
  const document = parseDocument(text, { uniqueKeys: false });
  return document.errors.length > 0 ? undefined : document.toJS({ maxAliasCount: -1 });
}
