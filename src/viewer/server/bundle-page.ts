import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The libraries in the bundle. Their licenses must be distributed with it. */
const libraries = ['preact', 'diff'];

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
    banner: { js: await licenses() },
    charset: 'utf8',
    logLevel: 'silent',
  });
  const files = new Map(outputFiles.map(({ path, contents }) => [basename(path), contents as Uint8Array]));
  files.set('main.css', files.get('main-style.css') ?? new Uint8Array());
  files.delete('main-style.css');
  for (const name of ['index.html', 'favicon.svg']) files.set(name, await readFile(`${folder}${name}`));
  return files;
}

/** The licenses of the libraries, as a comment. */
async function licenses(): Promise<string> {
  const texts = libraries.map(async (name) => {
    const file = new URL(`../../../node_modules/${name}/LICENSE`, import.meta.url);
    return `${name}\n\n${(await readFile(file, 'utf8')).trim().replaceAll('*/', '* /')}`;
  });
  return `/* This file contains:\n\n${(await Promise.all(texts)).join('\n\n')}\n*/`;
}
