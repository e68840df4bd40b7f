import { readFile } from 'node:fs/promises';

/** The files of the page, by their path in URLs. */
export type PageFiles = ReadonlyMap<string, { type: string; content: Uint8Array }>;

const types = {
  'index.html': 'text/html; charset=utf-8',
  'main.js': 'text/javascript; charset=utf-8',
  /** The script of an exported page. */
  'file.js': 'text/javascript; charset=utf-8',
  'main.css': 'text/css; charset=utf-8',
  'favicon.svg': 'image/svg+xml',
} as const;

/**
 * The files of the page: from the package, or bundled now from the sources of a checkout. Throws if neither
 * exists.
 */
export async function pageFiles(): Promise<PageFiles> {
  const folder = new URL('../page/', import.meta.url);
  // Only the build has a bundle beside the page.
  const contents = import.meta.url.endsWith('.ts')
    ? await (await import('./bundle-page.ts')).bundlePage()
    : new Map(
        await Promise.all(
          Object.keys(types).map(async (name) => [name, await readFile(new URL(name, folder))] as const),
        ),
      );
  const files = Object.entries(types).map(([name, type]) => {
    const content = contents.get(name);
    if (!content) throw new Error(`the page has no ${name}`);
    return [name === 'index.html' ? '/' : `/${name}`, { type, content }] as const;
  });
  return new Map(files);
}
