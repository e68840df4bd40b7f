import { type AST, ParseError, parseTOML } from 'toml-eslint-parser';
import { taskSets } from '../bounds/tasks.ts';
import { printPath } from '../contract/errors.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import type { ReadOptions } from '../suite/read-file.ts';
import type { Path } from '../suite/yaml-file.ts';
import { readText } from '../suite/yaml-file.ts';
import type { TaskDocument } from './document.ts';

/**
 * Reads a file in TOML 1.0. Dates are texts, as they are written. Throws {@link BadFile} at the position of
 * an error, or an `input` error if the file cannot be read.
 */
export function readTomlFile(
  file: string,
  { reach = 'anywhere', maximumBytes = taskSets.bytes.toml }: ReadOptions = {},
): TaskDocument {
  const text = readText(file, { reach, maximumBytes });
  const values = new Values(file, text);
  try {
    const [root] = parseTOML(text, { tomlVersion: '1.0' }).body;
    for (const node of root.body) values.add(node);
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    const { lineNumber: line, column, message } = error;
    throw new BadFile([{ file, line, column: column + 1, path: '', message }]);
  }
  return { file, value: values.root, issue: (path, message) => values.issue(path, message) };
}

type Table = Record<string, unknown>;

/** The tables of a document, as they grow from one line to the next. */
class Values {
  readonly root = emptyTable();
  readonly #file: string;
  readonly #text: string;
  /** Where each key of a table, and each element of a list, first is. */
  readonly #positions = new Map<object, Map<string | number, AST.Position>>();

  constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text;
  }

  add(node: AST.TOMLTable | AST.TOMLKeyValue): void {
    if (node.type === 'TOMLKeyValue') {
      this.#put(this.root, 0, node);
      return;
    }
    const path = node.resolvedKey;
    this.#bound(path.length, node);
    let key = 0;
    let inside: Table | unknown[] = this.root;
    for (const [index, step] of path.entries()) {
      this.#mark(inside, step, node.key.keys[typeof step === 'number' ? key - 1 : key++] ?? node);
      inside = childOf(inside, step, typeof path[index + 1] === 'number');
    }
    for (const pair of node.body) this.#put(inside as Table, path.length, pair);
  }

  #put(table: Table, level: number, { key, value }: AST.TOMLKeyValue): void {
    this.#bound(level + key.keys.length, key);
    let inside = table;
    for (const [index, part] of key.keys.entries()) {
      const name = part.type === 'TOMLBare' ? part.name : part.value;
      this.#mark(inside, name, part);
      if (index < key.keys.length - 1) inside = childOf(inside, name, false) as Table;
      else inside[name] = this.#value(level + key.keys.length, value);
    }
  }

  #value(level: number, node: AST.TOMLContentNode): unknown {
    this.#bound(level, node);
    switch (node.type) {
      case 'TOMLArray': {
        const list: unknown[] = [];
        for (const [index, element] of node.elements.entries()) {
          this.#mark(list, index, element);
          list.push(this.#value(level + 1, element));
        }
        return list;
      }
      case 'TOMLInlineTable': {
        const table = emptyTable();
        for (const pair of node.body) this.#put(table, level, pair);
        return table;
      }
      case 'TOMLValue':
        return node.value instanceof Date ? this.#text.slice(...node.range) : node.value;
    }
  }

  #mark(parent: object, key: string | number, { loc }: AST.TOMLNode): void {
    const known = this.#positions.get(parent) ?? new Map<string | number, AST.Position>();
    this.#positions.set(parent, known);
    if (!known.has(key)) known.set(key, loc.start);
  }

  #bound(level: number, { loc }: AST.TOMLNode): void {
    if (level <= taskSets.count.levels) return;
    const { line, column } = loc.start;
    const message = `is nested too deep: more than ${taskSets.count.levels} levels`;
    throw new BadFile([{ file: this.#file, line, column: column + 1, path: '', message }]);
  }

  issue(path: Path, message: string): FileIssue {
    let position: AST.Position = { line: 1, column: 0 };
    let inside: unknown = this.root;
    for (const step of path) {
      const at = this.#positions.get(inside as object)?.get(step);
      if (!at) break;
      position = at;
      inside = (inside as Table)[step];
    }
    const { line, column } = position;
    return { file: this.#file, line, column: column + 1, path: printPath(path), message };
  }
}

/** Without a prototype, so that every name is an ordinary key. */
function emptyTable(): Table {
  return Object.create(null) as Table;
}

function childOf(parent: Table | unknown[], step: string | number, isList: boolean): Table | unknown[] {
  const within = parent as Table;
  within[step] ??= isList ? [] : emptyTable();
  return within[step] as Table | unknown[];
}
