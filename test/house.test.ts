import { existsSync, readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/**
 * The modules of `src`, as docs/architecture.md lists them: what imports above, what is imported below. The
 * runners are a folder of their own.
 */
const modules = [
  'cli',
  'doctor',
  'check',
  'setup',
  'api',
  'fleet',
  'export',
  'viewer',
  'comparison',
  'audit',
  'evidence',
  'agent',
  'service',
  'trial',
  'runners',
  'harness',
  'validate',
  'gateway',
  'base-image',
  'engine',
  'ledger',
  'client',
  'tasks',
  'suite',
  'record',
  'contract',
  'redaction',
  'text',
  'stats',
  'base',
  'bounds',
];

/** Undefined for what is in neither `src` nor `runners`. */
function moduleOf(path: string): string | undefined {
  const [top, folder = '', ...inside] = path.split('/');
  if (top === 'runners') return 'runners';
  if (top !== 'src') return undefined;
  return inside.length === 0 ? undefined : folder;
}

/** No other module knows which runners there are: it gets them from the command line or the library. */
function mayImport(from: string, to: string): boolean {
  if (!modules.includes(from) || !modules.includes(to)) return false;
  if (to === 'runners') return ['cli', 'api', 'runners'].includes(from);
  return modules.indexOf(from) <= modules.indexOf(to);
}

test('imports between modules point down; biome finds the circles', async () => {
  const upward: string[] = [];
  let count = 0;
  for await (const path of glob(['src/**/*.{ts,tsx}', 'runners/**/*.ts'])) {
    const imports = readFileSync(path, 'utf8').matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g);
    for (const [, specifier = ''] of imports) {
      const target = join(dirname(path), specifier);
      const [from, to] = [moduleOf(path), moduleOf(target)];
      if (from === undefined || to === undefined) continue;
      count += 1;
      if (!mayImport(from, to)) upward.push(`${path} imports ${target}`);
    }
  }
  expect(upward).toEqual([]);
  expect(count).toBeGreaterThan(1000);
});

/** Modules that read JSON which this program wrote, or texts and objects without levels. */
const parsesItself = [
  'src/base/parse-json.ts',
  // A string; objects without objects, a million of them.
  'src/gateway/members.ts',
  'src/engine/docker/containers.ts',
  // What the ledger, the service's store and the log keep.
  'src/ledger/',
  'src/service/store/',
  'src/cli/daemon/log.ts',
  'src/cli/commands/show.ts',
  'src/cli/commands/shell.ts',
  'src/redaction/redactor.ts',
  'src/text/output.ts',
  // Files and output of this program, and of the user's engine.
  'src/doctor/deep/outcome.ts',
  'src/base/version.ts',
  'src/engine/connection/docker-context.ts',
  // What it wrote a moment ago.
  'src/suite/load-tests.ts',
  // They run in the browser and in the sandbox, and read what this program sends.
  'src/viewer/page/',
  'src/validate/sandboxed/',
];

test('docs/architecture.md has the modules in this order, and at most 25 concepts, each with its file', () => {
  const page = readFileSync('docs/architecture.md', 'utf8');
  const section = (heading: string) => page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  const named = [...section('Modules').matchAll(/^- `([^`]+)\/`: /gm)].map(([, name]) => name);
  expect(named).toEqual(modules);
  const concepts = section('Concepts')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2)
    .map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')));
  expect(concepts.length).toBeGreaterThan(20);
  expect(concepts.length).toBeLessThanOrEqual(25);
  expect(concepts.filter(([, , , path]) => !existsSync(join('src', path ?? '')))).toEqual([]);
});

test('an object is written as the formatter lays it out, not as a spread of literals', async () => {
  const spreads: string[] = [];
  for await (const path of glob(['{src,test,scripts,bench}/**/*.{ts,tsx}', 'runners/**/*.ts'])) {
    if (/[^{]\.{3}\{/.test(readFileSync(path, 'utf8'))) spreads.push(path);
  }
  expect(spreads).toEqual([]);
});

test('JSON from outside has one parser, which bounds its size and its depth', async () => {
  const others: string[] = [];
  const found = new Set<string>();
  for await (const path of glob(['src/**/*.{ts,tsx}', 'runners/**/*.ts'])) {
    if (!readFileSync(path, 'utf8').includes('JSON.parse')) continue;
    const known = parsesItself.find((each) => path.startsWith(each));
    if (known === undefined) others.push(path);
    else found.add(known);
  }
  expect(others).toEqual([]);
  expect([...found].toSorted()).toEqual(parsesItself.toSorted());
});

test('no line of a comment is wider than 110 columns; strings and single long words, such as URLs, may be', async () => {
  const wide: string[] = [];
  let count = 0;
  for await (const path of glob('{src,runners,scripts}/**/*.{ts,tsx,cjs,mjs,css,py,sh}')) {
    const comment = /\.(py|sh)$/.test(path) ? /^\s*#\s*(.*)$/ : /^\s*(?:\/\/|\/\*+|\*)\s*(.*)$/;
    for (const [index, line] of readFileSync(path, 'utf8').split('\n').entries()) {
      const text = comment.exec(line)?.[1];
      if (text === undefined) continue;
      count += 1;
      if (line.length > 110 && text.includes(' ')) wide.push(`${path}:${index + 1}`);
    }
  }
  expect(wide).toEqual([]);
  expect(count).toBeGreaterThan(10_000);
});
