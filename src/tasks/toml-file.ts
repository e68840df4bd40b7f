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
  /** Where each key, and each element of a list, first is, by its path in JSON. */
  const positions = new Map<string, AST.Position>();
  const mark = (path: Path, { loc }: AST.TOMLNode) => {
    if (path.length > taskSets.count.levels) {
      const message = `is nested too deep: more than ${taskSets.count.levels} levels`;
      throw new BadFile([issueAt(loc.start, '', message)]);
    }
    const key = JSON.stringify(path);
    if (!positions.has(key)) positions.set(key, loc.start);
  };
  const put = (path: Path, node: AST.TOMLContentNode) => {
    const parent = tableAt(root, path.slice(0, -1));
    const key = path.at(-1) ?? '';
    if (node.type === 'TOMLValue') {
      parent[key] = node.value instanceof Date ? text.slice(...node.range) : node.value;
    } else if (node.type === 'TOMLArray') {
      parent[key] = [];
      for (const [index, element] of node.elements.entries()) {
        mark([...path, index], element);
        put([...path, index], element);
      }
    } else {
      parent[key] = emptyTable();
      for (const pair of node.body) putPair(path, pair);
    }
  };
  const putPair = (table: Path, { key, value }: AST.TOMLKeyValue) => {
    let path = table;
    for (const part of key.keys) {
      path = [...path, part.type === 'TOMLBare' ? part.name : part.value];
      mark(path, part);
    }
    put(path, value);
  };
  try {
    for (const node of parseTOML(text, { tomlVersion: '1.0' }).body[0].body) {
      if (node.type === 'TOMLKeyValue') putPair([], node);
      else {
        const path = node.resolvedKey;
        // The number of an element stands at the key of its list.
        let named = 0;
        for (const [index, step] of path.entries()) {
          if (typeof step === 'string') named += 1;
          mark(path.slice(0, index + 1), node.key.keys[named - 1] ?? node);
        }
        tableAt(root, path);
        for (const pair of node.body) putPair(path, pair);
      }
    }
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    throw new BadFile([issueAt({ line: error.lineNumber, column: error.column }, '', error.message)]);
  }
  const issue = (path: Path, message: string) => {
    const ways = path.map((_, index) => JSON.stringify(path.slice(0, path.length - index)));
    const known = ways.flatMap((way) => positions.get(way) ?? [])[0];
    return issueAt(known ?? { line: 1, column: 0 }, printPath(path), message);
  };
  return { file, value: root, issue };
}

type Table = Record<string | number, unknown>;

/** Without a prototype, so that every name is an ordinary key. */
function emptyTable(): Table {
  return Object.create(null) as Table;
}

/** The table or list at a path. Those that are missing are made. */
function tableAt(root: Table, path: Path): Table {
  return path.reduce<Table>((parent, step, index) => {
    parent[step] ??= typeof path[index + 1] === 'number' ? [] : emptyTable();
    return parent[step] as Table;
  }, root);
}
