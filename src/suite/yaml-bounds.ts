import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  Lexer,
  type Node,
  Parser,
  type YAMLMap,
} from 'yaml';
import { yamlFiles } from '../bounds/suite.ts';
import { hasNul } from './file-issues.ts';

/** A part of a YAML text that Offsite refuses to read, with its offset. */
export interface YamlProblem {
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
export function documentProblem(document: Document): YamlProblem | undefined {
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
