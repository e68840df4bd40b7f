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
const optional = ['@aws-sdk/*', '@sigstore/*', '@temporalio/*', 'sigstore'];

/** Only a checkout has these, and only a checkout needs them. */
const ofCheckout = ['esbuild'];

/**
 * Packages that few commands use, or late, by what the sources import from them. Each is a file of its own,
 * which is read when something of it is first used.
 */
const late: Readonly<Record<string, readonly string[]>> = {
  'dockerfile-ast': ['DockerfileParser', 'Entrypoint', 'From', 'Workdir'],
  execa: ['execa'],
  'fast-xml-parser': ['XMLBuilder', 'XMLParser', 'XMLValidator'],
  'string-width': ['default'],
  'toml-eslint-parser': ['ParseError', 'parseTOML'],
  undici: ['Agent', 'EnvHttpProxyAgent'],
};

/** Files of packages that Offsite does not use, by what stands in their place. */
const unused: ReadonlyArray<[path: RegExp, contents: string]> = [
  [/\/zod\/v4\/locales\/index\.js$/, "export { default as en } from './en.js';"],
];

/**
 * Bundles the command line and the library with the packages they use, so that a command starts from a few
 * files instead of hundreds. `sources` is a JavaScript expression for the URL of a folder with the layout of
 * the repository. Sources read files beside themselves there. `extension` is that of the sources in it.
 */
export async function bundleProgram(sources: string, extension: 'js' | 'ts'): Promise<Bundled> {
  const shared = {
    absWorkingDir: root,
    outdir: root,
    write: false,
    bundle: true,
    platform: 'node',
    target: 'node24',
    // Not minified, so that what a crash prints can be found in it.
    legalComments: 'none',
    charset: 'utf8',
    logLevel: 'warning',
    metafile: true,
  } as const;
  const program = await build({
    ...shared,
    entryPoints: entries,
    outbase: root,
    chunkNames: 'src/parts/[name]-[hash]',
    splitting: true,
    format: 'esm',
    external: [...optional, ...ofCheckout],
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
      latePackages,
      withoutSubprograms,
      lateFastPaths,
      withoutUnused,
    ],
  });
  const packages = await build({
    ...shared,
    entryPoints: Object.keys(late).map((name) => ({ in: name, out: `src/parts/${name}` })),
    // A package must be there when the call that first uses it returns.
    format: 'cjs',
    outExtension: { '.js': '.cjs' },
  });
  const files = [...program.outputFiles, ...packages.outputFiles].map(
    ({ path, contents }): [string, Uint8Array] => [relative(root, path), contents],
  );
  const licenses = await licensesIn({ ...program.metafile.outputs, ...packages.metafile.outputs });
  return { files: new Map(files), licenses };
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

/** Reads a package of {@link late} when one of its functions or classes is first used. */
const latePackages: Plugin = {
  name: 'late-packages',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: new RegExp(`^(${Object.keys(late).join('|')})$`) }, ({ path }) => ({
      path,
      namespace: 'late',
    }));
    onLoad({ filter: /.*/, namespace: 'late' }, ({ path }) => ({
      contents: [
        // The bundled files are below `src/`.
        "const parts = import.meta.url.slice(0, import.meta.url.lastIndexOf('/src/')) + '/src/parts/';",
        `const used = (name) => createRequireOfBundle(parts)('./${path}.cjs')[name];`,
        'const late = (name) => new Proxy(function () {}, {',
        '  get: (_, key) => used(name)[key],',
        '  apply: (_, self, given) => Reflect.apply(used(name), self, given),',
        '  construct: (_, given) => Reflect.construct(used(name), given),',
        '});',
        ...(late[path] ?? []).map((name) =>
          name === 'default' ? `export default late('default');` : `export const ${name} = late('${name}');`,
        ),
      ].join('\n'),
      loader: 'js',
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

/**
 * Has zod write a parser of its own for a schema only when the schema has been used some times. The parser is
 * faster, but a command that uses most of its schemas once pays a tenth of its time to compile them.
 */
const lateFastPaths: Plugin = {
  name: 'late-fast-paths',
  setup({ onLoad }) {
    onLoad({ filter: /\/zod\/v4\/core\/schemas\.js$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const contents = source
        .replace('let fastpass;', 'let fastpass, uses = 0;')
        .replace('if (jit && fastEnabled && ', 'if (jit && fastEnabled && ++uses > 50 && ');
      if (contents.match(/\buses\b/g)?.length !== 2)
        return { errors: [{ text: `${path} writes its parsers in another way` }] };
      return { contents, loader: 'js' };
    });
  },
};

/** Puts what {@link unused} says in the place of files. */
const withoutUnused: Plugin = {
  name: 'without-unused',
  setup({ onLoad }) {
    for (const [filter, contents] of unused) onLoad({ filter }, () => ({ contents, loader: 'js' }));
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

async function licensesIn(outputs: Metafile['outputs']): Promise<string> {
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
