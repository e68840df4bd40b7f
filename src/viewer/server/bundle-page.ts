import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Bundles the page from its sources. Only a checkout has esbuild. Returns the files by their names. */
export async function bundlePage(): Promise<Map<string, Uint8Array>> {
  const { build } = await import('esbuild');
  const folder = fileURLToPath(new URL('../page/', import.meta.url));
  const { outputFiles } = await build({
    entryPoints: {
      main: `${folder}main.tsx`,
      file: `${folder}file.tsx`,
      'main-style': `${folder}styles/main.css`,
    },
    outdir: folder,
    write: false,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2024',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'inline',
    charset: 'utf8',
    logLevel: 'silent',
  });
  const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents as Uint8Array]));
  files.set('main.css', files.get('main-style.css') ?? new Uint8Array());
  files.delete('main-style.css');
  for (const name of ['index.html', 'favicon.svg']) files.set(name, await readFile(`${folder}${name}`));
  return files;
}
