import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { build, type Metafile, type Plugin } from 'esbuild';
import { commandTrees } from '../src/cli/command-list.ts';

/** The repository. */
const root = join(import.meta.dirname, '..');

/** The command line and the library, as folders of the repository, or of `dist/`. */
const entries = ['src/cli/main.ts', 'src/api/index.ts'];

export interface Bundled {
  /** The contents of files by their paths below the output folder: the entries and their parts. */
  files: Map<string, Uint8Array>;
  /** The licenses of the packages whose code the files contain. */
  licenses: string;
}

/** Packages that a user installs for the commands that need them. */
const optional = [
  '@aws-sdk/*',
  '@opentelemetry/otlp-transformer',
  '@opentelemetry/resources',
  '@temporalio/*',
];

/** Only a checkout has these, and only a checkout needs them. */
const ofCheckout = ['esbuild'];

/** Native parts, without which `ssh2` works too. */
const native = ['cpu-features', '*.node'];

/**
 * Bundles the command line and the library with the packages they use, so that a command starts from a few
 * files instead of hundreds. `sources` is a JavaScript expression for the URL of a folder with the layout of
 * the repository. Sources read files beside themselves there. `extension` is that of the sources in it.
 */
export async function bundleProgram(sources: string, extension: 'js' | 'ts'): Promise<Bundled> {
  const { metafile, outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: entries,
    outdir: root,
    outbase: root,
    chunkNames: 'src/parts/[name]-[hash]',
    write: false,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    // Not minified, so that what a crash prints can be found in it.
    legalComments: 'none',
    charset: 'utf8',
    external: [...optional, ...ofCheckout, ...native],
    banner: {
      // CommonJS packages expect these names.
      js: [
        "import { createRequire as createRequireOfBundle } from 'node:module';",
        'const require = createRequireOfBundle(import.meta.url);',
        'const __dirname = import.meta.dirname;',
        'const __filename = import.meta.filename;',
        `const urlOfSource = (path) => new URL(path + '.${extension}', ${sources}).href;`,
      ].join('\n'),
    },
    plugins: [
      withCommandTrees,
      placesOfSources,
      lazyBuiltins,
      lazyPackages,
      withoutSubprograms,
      withoutBuildSessions,
    ],
    logLevel: 'warning',
    metafile: true,
  });
  const files = outputFiles.map(({ path, contents }): [string, Uint8Array] => [
    relative(root, path),
    contents,
  ]);
  return { files: new Map(files), licenses: await licensesIn(metafile) };
}

/** Lets sources find the files beside them, although their code moves into the bundle. */
const placesOfSources: Plugin = {
  name: 'places-of-sources',
  setup({ onLoad }) {
    onLoad({ filter: /\/(src|runners)\/.*\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      if (!source.includes('import.meta.')) return undefined;
      const name = relative(root, path).replace(/\.ts$/, '');
      const contents = source.replaceAll('import.meta.url', `urlOfSource('${name}')`);
      const left = /import\.meta\.\w+/.exec(contents);
      if (left)
        return { errors: [{ text: `${path} uses ${left[0]}; in a bundle only import.meta.url works` }] };
      return { contents, loader: 'ts' };
    });
  },
};

/**
 * Reads Node's own modules by `require`. An `import` of one evaluates all that it exports, also what Node
 * loads only on demand: `node:http` brings a whole HTTP client, `node:fs` the streams.
 */
const lazyBuiltins: Plugin = {
  name: 'lazy-builtins',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path, kind }) => {
      return kind === 'import-statement' ? { path, namespace: 'builtin' } : undefined;
    });
    onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)});`,
      loader: 'js',
    }));
  },
};

/**
 * Evaluates a package when one of its functions or classes is first called. Measuring text takes tables of
 * characters, which take longer to make than a short command takes, and are needed for few texts. undici is
 * for services and models elsewhere.
 */
const lazyPackages: Plugin = {
  name: 'lazy-packages',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(string-width|undici)$/ }, ({ path, kind, resolveDir }) => {
      return kind === 'import-statement' ? { path, namespace: 'lazy', pluginData: resolveDir } : undefined;
    });
    onLoad({ filter: /^string-width$/, namespace: 'lazy' }, ({ path, pluginData }) => ({
      contents: `let made; export default (...given) => (made ??= require(${JSON.stringify(path)}).default)(...given);`,
      loader: 'js',
      resolveDir: pluginData,
    }));
    onLoad({ filter: /^undici$/, namespace: 'lazy' }, ({ path, pluginData }) => ({
      contents: ['Agent', 'EnvHttpProxyAgent']
        .map(
          (name) =>
            `export function ${name}(...given) { return new (require('${path}').${name})(...given); }`,
        )
        .join('\n'),
      loader: 'js',
      resolveDir: pluginData,
    }));
  },
};

/**
 * Leaves out the part of commander that starts programs as commands. Offsite has no such commands, and the
 * part loads all of Node's network modules.
 */
const withoutSubprograms: Plugin = {
  name: 'without-subprograms',
  setup({ onLoad }) {
    onLoad({ filter: /\/commander\/lib\/command\.js$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const contents = source.replace(
        "import childProcess from 'node:child_process';",
        'const childProcess = {};',
      );
      if (contents === source) return { errors: [{ text: `${path} does not import node:child_process` }] };
      return { contents, loader: 'js' };
    });
  },
};

/** dockerode brings gRPC for sessions of BuildKit, which Offsite does not open. */
const withoutBuildSessions: Plugin = {
  name: 'without-build-sessions',
  setup({ onLoad }) {
    onLoad({ filter: /\/dockerode\/lib\/session\.js$/ }, () => ({
      contents:
        "module.exports = () => { throw new Error('this build of dockerode opens no build session'); };",
      loader: 'js',
    }));
  },
};

/** Writes down what all commands take. */
const withCommandTrees: Plugin = {
  name: 'with-command-trees',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/cli\/bundled-trees\.ts$/ }, async () => ({
      contents: `export const bundledTrees = ${JSON.stringify(await commandTrees())};`,
      loader: 'js',
    }));
  },
};

async function licensesIn({ outputs }: Metafile): Promise<string> {
  const folders = new Set(
    Object.values(outputs).flatMap(({ inputs }) =>
      Object.keys(inputs).flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []),
    ),
  );
  const texts = [...folders].toSorted().map(async (folder) => {
    const { name, version, license } = JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8'));
    const file = (await readdir(join(root, folder))).find((each) => /^licen[cs]e(\.\w+)?$/i.test(each));
    const text = file === undefined ? license : (await readFile(join(root, folder, file), 'utf8')).trim();
    return `${'-'.repeat(80)}\n${name} ${version}\n\n${text}\n`;
  });
  return `This package contains code of the packages below.\n\n${(await Promise.all(texts)).join('\n')}`;
}
