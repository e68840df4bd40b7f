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
  const issueAt = ({ line, column }: AST.Position, path: string, message: string): FileIssue => {
    return { file, line, column: column + 1, path, message };
  };
  const root = emptyTable();
  /** Where each key of a table, and each element of a list, first is. */
  const positions = new Map<Table, Map<string | number, AST.Position>>();
  const mark = (parent: Table, key: string | number, level: number, { loc }: AST.TOMLNode) => {
    if (level > taskSets.count.levels) {
      const message = `is nested too deep: more than ${taskSets.count.levels} levels`;
      throw new BadFile([issueAt(loc.start, '', message)]);
    }
    const known = positions.get(parent) ?? new Map<string | number, AST.Position>();
    positions.set(parent, known);
    if (!known.has(key)) known.set(key, loc.start);
  };
  const put = (parent: Table, key: string | number, level: number, node: AST.TOMLContentNode) => {
    if (node.type === 'TOMLValue') {
      parent[key] = node.value instanceof Date ? text.slice(...node.range) : node.value;
    } else if (node.type === 'TOMLArray') {
      const list = childOf(parent, key, true);
      for (const [index, element] of node.elements.entries()) {
        mark(list, index, level + 1, element);
        put(list, index, level + 1, element);
      }
    } else {
      const table = childOf(parent, key, false);
      for (const pair of node.body) putPair(table, level, pair);
    }
  };
  const putPair = (table: Table, level: number, { key: { keys }, value }: AST.TOMLKeyValue) => {
    let parent = table;
    for (const [index, part] of keys.entries()) {
      const name = part.type === 'TOMLBare' ? part.name : part.value;
      mark(parent, name, level + index + 1, part);
      if (index < keys.length - 1) parent = childOf(parent, name, false);
      else put(parent, name, level + keys.length, value);
    }
  };
  try {
    for (const node of parseTOML(text, { tomlVersion: '1.0' }).body[0].body) {
      if (node.type === 'TOMLKeyValue') putPair(root, 0, node);
      else {
        const path = node.resolvedKey;
        // The number of an element stands at the key of its list.
        let named = 0;
        let table = root;
        for (const [index, step] of path.entries()) {
          if (typeof step === 'string') named += 1;
          mark(table, step, index + 1, node.key.keys[named - 1] ?? node);
          table = childOf(table, step, typeof path[index + 1] === 'number');
        }
        for (const pair of node.body) putPair(table, path.length, pair);
      }
    }
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    throw new BadFile([issueAt({ line: error.lineNumber, column: error.column }, '', error.message)]);
  }
  const issue = (path: Path, message: string) => {
    let position: AST.Position = { line: 1, column: 0 };
    let inside: unknown = root;
    for (const step of path) {
      const known = positions.get(inside as Table)?.get(step);
      if (!known) break;
      position = known;
      inside = (inside as Table)[step];
    }
    return issueAt(position, printPath(path), message);
  };
  return { file, value: root, issue };
}

type Table = Record<string | number, unknown>;

/** Without a prototype, so that every name is an ordinary key. */
function emptyTable(): Table {
  return Object.create(null) as Table;
}

/** The table or list at a key. It is made if it is missing. */
function childOf(parent: Table, key: string | number, isList: boolean): Table {
  parent[key] ??= isList ? [] : emptyTable();
  return parent[key] as Table;
}
