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
} from 'yaml';
import { yamlFiles } from '../bounds/suite.ts';

/** Something in a YAML text that is not read, at its offset. */
export interface YamlTrouble {
  offset: number;
  message: string;
}

/** Looks at a text before anything recursive does: how deep it goes, and how much there is of it. */
export function boundsTrouble(text: string): YamlTrouble | undefined {
  const parser = new Parser();
  let tokens = 0;
  for (const lexeme of new Lexer().lex(text)) {
    for (const _ of parser.next(lexeme)) {
      // What is whole is not needed.
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

/** Looks for keys that are there twice, and for aliases that lead into themselves or grow beyond measure. */
export function documentTrouble(document: Document): YamlTrouble | undefined {
  const anchors = new Map<string, Anchor>();
  let trouble: YamlTrouble | undefined;
  const refuse = (node: Node, message: string): 0 => {
    trouble ??= { offset: node.range?.[0] ?? 0, message };
    return 0;
  };

  /** What a node comes to. */
  function weigh(node: unknown): number {
    if (trouble || !isNode(node)) return 0;
    if (isAlias(node)) return weighAlias(node.source, node);
    const anchor: Anchor | undefined = node.anchor === undefined ? undefined : { weight: undefined };
    if (anchor && node.anchor !== undefined) anchors.set(node.anchor, anchor);
    let weight = yamlFiles.bytes.value;
    if (isScalar(node)) weight += String(node.source ?? '').length;
    if (isMap(node)) refuseRepeated(node.items.map(({ key }) => key));
    if (isCollection(node)) {
      for (const item of node.items) {
        weight += isPair(item) ? weigh(item.key) + weigh(item.value) : weigh(item);
        if (weight > yamlFiles.bytes.expanded) return refuse(node, 'expands to too much by its aliases');
      }
    }
    if (anchor) anchor.weight = weight;
    return weight;
  }

  function weighAlias(source: string, node: Node): number {
    const anchor = anchors.get(source);
    if (!anchor) return refuse(node, `*${source} stands for nothing: there is no &${source} before it`);
    return anchor.weight ?? refuse(node, `*${source} stands inside of itself`);
  }

  function refuseRepeated(keys: readonly unknown[]): void {
    const seen = new Set<unknown>();
    for (const key of keys) {
      if (!isScalar(key)) continue;
      if (seen.has(key.value)) refuse(key, 'Map keys must be unique');
      seen.add(key.value);
    }
  }

  weigh(document.contents);
  return trouble;
}

interface Anchor {
  /** Undefined while what it stands for is still being weighed. */
  weight: number | undefined;
}
