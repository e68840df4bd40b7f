import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import markdownIt from 'markdown-it';
import { anchorOf } from '../../site/.vitepress/anchor-of.ts';

/**
 * A fenced block of a page. After its language, the line of the fence may have words: what the content
 * is, such as `ci=github`; `run`; `file=PATH`; `unchecked="the reason"`.
 */
export interface Block {
  page: string;
  /** Of its fence, from 1. */
  line: number;
  language: string;
  words: ReadonlyMap<string, string>;
  content: string;
}

const root = join(import.meta.dirname, '../..');

/** All pages that people read: those at the top, the documents and those of the examples. */
export const pages: readonly string[] = globSync(
  ['{README,CONTRIBUTING,SECURITY}.md', 'docs/**/*.md', 'examples/**/*.md'],
  {
    cwd: root,
  },
).toSorted();

const markdown = markdownIt({ html: true });

function parsed(page: string) {
  return markdown.parse(readFileSync(join(root, page), 'utf8'), {});
}

export function blocksOf(page: string): Block[] {
  return parsed(page)
    .filter(({ type }) => type === 'fence')
    .map(({ info, content, map }) => {
      const [language = '', ...words] = info.match(/[\w-]+(=("[^"]*"|\S+))?/g) ?? [];
      const pairs = words.map((word): [string, string] => {
        const [, name = word, value = ''] = /^([\w-]+)=(.*)$/.exec(word) ?? [];
        return [name, value.replace(/^"(.*)"$/, '$1')];
      });
      return { page, line: (map?.[0] ?? 0) + 1, language, words: new Map(pairs), content };
    });
}

/** Blocks that are only indented. They could not say what they are. */
export function indentedBlocksOf(page: string): string[] {
  return parsed(page)
    .filter(({ type }) => type === 'code_block')
    .map(({ map }) => `${page}:${(map?.[0] ?? 0) + 1}`);
}

/** What is between backticks in the lines of a page. */
export function inlineCodesOf(page: string): string[] {
  return parsed(page)
    .flatMap(({ children }) => children ?? [])
    .filter(({ type }) => type === 'code_inline')
    .map(({ content }) => content);
}

/** Where the links and the pictures of a page lead, as they are written. */
export function linksOf(page: string): string[] {
  return parsed(page)
    .flatMap(({ children }) => children ?? [])
    .flatMap((token) => token.attrGet('href') ?? token.attrGet('src') ?? [])
    .map(String);
}

/** The anchors of a page's headings. */
export function anchorsOf(page: string): string[] {
  const tokens = parsed(page);
  return tokens.flatMap(({ type }, index) => {
    if (type !== 'heading_open') return [];
    const words = tokens[index + 1]?.children?.filter((each) => ['text', 'code_inline'].includes(each.type));
    return [anchorOf((words ?? []).map(({ content }) => content).join(''))];
  });
}

export function placeOf({ page, line }: Block): string {
  return `${page}:${line}`;
}
