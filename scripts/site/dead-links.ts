import { readFileSync, statSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * The links of a built site that lead nowhere: to a page, an anchor, an image or another file that is
 * missing. Links to other hosts are not followed.
 *
 * @param folder the built site
 * @returns one line each: `page.html: address`
 */
export async function deadLinks(folder: string): Promise<string[]> {
  const pages = new Map<string, { ids: Set<string>; links: Set<string> }>();
  for await (const path of glob('**/*.html', { cwd: folder })) {
    const html = readFileSync(join(folder, path), 'utf8');
    pages.set(path, {
      ids: new Set(html.matchAll(/ id="([^"]*)"/g).map(([, id = '']) => id)),
      links: new Set(html.matchAll(/ (?:href|src)="([^"]*)"/g).map(([, link = '']) => link)),
    });
  }
  const leadsNowhere = (from: string, link: string) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [path = '', anchor = ''] = link.split('#').map(decodeURIComponent);
    const target = path === '' ? from : join(dirname(from), path.endsWith('/') ? `${path}index.html` : path);
    if (!isFile(join(folder, target))) return true;
    return anchor !== '' && !pages.get(target)?.ids.has(anchor);
  };
  return [...pages].flatMap(([from, { links }]) =>
    [...links].filter((link) => leadsNowhere(from, link)).map((link) => `${from}: ${link}`),
  );
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
