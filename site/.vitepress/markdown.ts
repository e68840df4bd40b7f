import type { MarkdownOptions, MarkdownRenderer } from 'vitepress';
import { anchorOf } from './anchor-of.ts';

/** How the pages of `docs/` become HTML. They are read on code hosts too, which has the same anchors. */
export const markdown: MarkdownOptions = {
  anchor: { slugify: anchorOf },
  config: (md) => {
    namePlacesOutside(md);
    followTheme(md);
  },
};

/**
 * A link to a file outside `docs/` leads nowhere on the site. It becomes its text, with the path as its
 * title.
 */
function namePlacesOutside(md: MarkdownRenderer): void {
  md.core.ruler.push('places-outside', ({ tokens }) => {
    for (const { children } of tokens) {
      let isOutside = false;
      for (const token of children ?? []) {
        const path = token.type === 'link_open' ? String(token.attrGet('href') ?? '') : '';
        if (token.type === 'link_open') isOutside = !path.endsWith('.md') && path.startsWith('../');
        if (!isOutside || !token.type.startsWith('link_')) continue;
        token.tag = 'span';
        if (token.nesting === 1) token.attrs = [['title', `${path.slice(3)} of the package`]];
        token.type = token.nesting === 1 ? 'span_open' : 'span_close';
      }
    }
  });
}

const picture =
  /^<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*<img src="([^"]+)" alt="([^"]*)">\s*<\/picture>\s*$/;

/** A `<picture>` follows the system's theme. On the site, it follows the site's. */
function followTheme(md: MarkdownRenderer): void {
  md.core.ruler.push('follow-theme', ({ tokens }) => {
    for (const token of tokens) {
      if (token.type !== 'html_block' || !token.content.startsWith('<picture>')) continue;
      const [, dark, light, alt] = picture.exec(token.content) ?? [];
      if (dark === undefined) throw new Error(`a picture of another form:\n${token.content}`);
      token.content =
        `<p class="picture"><img class="in-light" src="./${light}" alt="${alt}">` +
        `<img class="in-dark" src="./${dark}" alt="${alt}"></p>\n`;
    }
  });
}
