import { mkdtempDisposableSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, expect, test } from 'vitest';
import { operations } from '../../src/contract/operations.ts';
import { dockerfileProblems } from '../../src/suite/dockerfile.ts';
import { StreamLine } from '../../src/suite/stream-line.ts';
import { type Block, blocksOf, indentedBlocksOf, inlineCodesOf, pages, placeOf } from './blocks.ts';
import { problemOf } from './command-line.ts';
import { commandsOf, offsiteArgs } from './shell.ts';
import { gitlabProblems, scriptsOf, workflowProblems, yamlProblems } from './yaml.ts';

const root = join(import.meta.dirname, '../..');
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const blocks = pages.flatMap(blocksOf);
const unchecked = blocks.filter(({ words }) => words.has('unchecked'));

/** How the blocks of each language are checked. Each check says what is wrong. */
const checks: Record<string, (block: Block) => string[] | Promise<string[]>> = {
  sh: ({ content }) => shellProblems(content),
  yaml: async ({ content, words }) => {
    const excerpt = words.get('excerpt');
    if (excerpt !== undefined) return excerptProblems(content, excerpt);
    if (!words.has('ci')) return yamlProblems(content);
    const ofScripts = await Promise.all(scriptsOf(content).map(shellProblems));
    return [...(words.get('ci') === 'github' ? workflowProblems(content) : []), ...ofScripts.flat()];
  },
  // What a program prints, line by line.
  jsonl: ({ content }) =>
    content
      .trim()
      .split('\n')
      .flatMap((line) => StreamLine.safeParse(JSON.parse(line)).error?.message ?? []),
  // A file of another program, such as an engine's.
  json({ content }) {
    JSON.parse(content);
    return [];
  },
  ts: ({ content }) => typeProblems(content),
  dockerfile: ({ content }) => dockerfileProblems(content, undefined).map(({ message }) => message),
  // What a command prints.
  text: () => [],
};

/** A part of a file, which uses what is elsewhere in it. */
function excerptProblems(text: string, path: string): string[] {
  const flat = (lines: string) => lines.replaceAll(/^ +/gm, '');
  return flat(readFileSync(join(root, path), 'utf8')).includes(flat(text))
    ? []
    : [`${path} has no such lines`];
}

const tsc = (...args: string[]) => execa('tsc', args, { cwd: root, preferLocal: true, reject: false });
const types = mkdtempSync(join(tmpdir(), 'offsite-types-'));
afterAll(() => rmSync(types, { recursive: true }));
let emitted: Promise<unknown> | undefined;

/** What the compiler says about a module that imports what the package offers. */
async function typeProblems(source: string): Promise<string[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'offsite-example-'));
  emitted ??= tsc('-p', 'tsconfig.types.json', '--outDir', types);
  await emitted;
  const compilerOptions = {
    paths: {
      offsite: [join(types, 'src/api/index.d.ts')],
      'offsite/validator': [join(types, 'src/validate/sandboxed/api.d.ts')],
    },
    typeRoots: [join(root, 'node_modules/@types')],
    noUncheckedIndexedAccess: false, // most readers have `strict` alone
  };
  const project = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions,
    include: ['example.ts'],
    exclude: [],
  };
  writeFileSync(join(folder.path, 'tsconfig.json'), JSON.stringify(project));
  writeFileSync(join(folder.path, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(folder.path, 'example.ts'), source);
  const { exitCode, stdout } = await tsc('-p', folder.path);
  return exitCode === 0 ? [] : [stdout];
}

async function shellProblems(script: string): Promise<string[]> {
  const { commands, problems } = await commandsOf(script);
  const found = await Promise.all(commands.map(commandProblem));
  return [problems, ...found].filter((problem) => problem !== undefined && problem !== '') as string[];
}

async function commandProblem(command: readonly string[]): Promise<string | undefined> {
  const args = offsiteArgs(command);
  if (args !== undefined) {
    const problem = await problemOf(args);
    return problem && `offsite ${args.join(' ')}: ${problem.message}`;
  }
  const [program, ...words] = command;
  if (program === 'npm' && words[0] === 'run') {
    const name = words.slice(1).find((word) => !word.startsWith('-')) ?? '';
    return Object.hasOwn(scripts, name) ? undefined : `package.json has no script ${name}`;
  }
  return program === 'curl' ? requestProblem(words) : undefined;
}

/** What is wrong with a request to the service. */
function requestProblem(words: readonly string[]): string | undefined {
  const [, name = ''] = /\/v1\/([\w.]+)$/.exec(words.find((word) => word.includes('/v1/')) ?? '') ?? [];
  const body = words[words.indexOf('-d') + 1] ?? '';
  const { request } = operations[name as keyof typeof operations] ?? {};
  if (request === undefined) return `the service has no operation ${name}`;
  return request.safeParse(JSON.parse(body)).error?.message;
}

test('every block of code has a fence, which says what it is', () => {
  expect(pages.flatMap(indentedBlocksOf)).toEqual([]);
  expect(blocks.length).toBeGreaterThan(80);
  const odd = blocks.filter(
    ({ language, words }) =>
      !(Object.hasOwn(checks, language) || words.has('unchecked')) || words.get('unchecked') === '',
  );
  expect(odd.map(placeOf)).toEqual([]);
});

test('few blocks are not checked, and each says why', () => {
  for (const block of unchecked)
    console.log(`not checked: ${placeOf(block)}: ${block.words.get('unchecked')}`);
  expect(unchecked.length).toBeLessThanOrEqual(1);
});

test.each(pages.filter((page) => blocksOf(page).length > 0))('the examples of %s are right', async (page) => {
  const wrong: string[] = [];
  for (const block of blocksOf(page)) {
    if (block.words.has('unchecked')) continue;
    for (const problem of (await checks[block.language]?.(block)) ?? [])
      wrong.push(`${placeOf(block)}: ${problem}`);
  }
  expect(wrong).toEqual([]);
});

test('a guide links the first use of each word of its own to the glossary', () => {
  const guides = [...new Set(pages)].filter(
    (page) => /^docs\/[^/]+\.md$/.test(page) && !/(glossary|index|architecture)\.md$/.test(page),
  );
  expect(guides.length).toBeGreaterThan(20);
  const unlinked = guides.flatMap((page) => {
    const prose = readFileSync(join(root, page), 'utf8')
      .replaceAll(/^ *```.*?^ *```/gms, '')
      .replaceAll(/`[^`]*`|^#.*$|<[^>]*>/gm, '')
      .replaceAll(/\]\((?!glossary)[^)]*\)/g, ']');
    return ['wire', 'cell', 'void', 'outbox', 'profile'].flatMap((word) => {
      const first = new RegExp(`(.?)\\b${word}s?\\b(\\]\\(glossary\\.md\\))?`, 'i').exec(prose);
      return !first || first[2] !== undefined ? [] : [`${page}: ${word}`];
    });
  });
  expect(unlinked).toEqual([]);
});

test('a guide has at most 1,500 words, and all guides together 35,000', () => {
  const guides = pages.filter((page) => /^(README|docs\/[^/]*)\.md$/.test(page));
  const words = guides.map((page) => readFileSync(join(root, page), 'utf8').split(/\s+/).length);
  expect(guides.filter((_, index) => (words[index] ?? 0) > 1500)).toEqual([]);
  expect(words.reduce((sum, count) => sum + count, 0)).toBeLessThan(35_000);
});

test('commands that pages name in their sentences are there, with their options', async () => {
  // A set of choices, such as `offsite data outbox [list|send]`, is no command line.
  const named = pages
    .flatMap(inlineCodesOf)
    .filter((code) => /^offsite [a-z]/.test(code) && !/[[|…]/.test(code));
  const { commands, problems } = await commandsOf([...new Set(named)].join('\n'));
  expect(problems).toBe('');
  expect(commands.length).toBeGreaterThan(50);
  const wrong: string[] = [];
  for (const [, ...args] of commands) {
    const problem = await problemOf(args);
    if (problem && !shortened.has(problem.code)) wrong.push(`offsite ${args.join(' ')}: ${problem.message}`);
  }
  expect(wrong).toEqual([]);
});

/** A sentence names a command without all that it requires, or with N in place of a number. */
const shortened = new Set([
  'commander.help',
  'commander.invalidArgument',
  'commander.missingArgument',
  'commander.missingMandatoryOptionValue',
  'commander.optionMissingArgument',
]);

test('a check finds what is wrong', async () => {
  expect(await shellProblems('offsite run a.yaml --concurency 2')).toEqual([
    expect.stringContaining("unknown option '--concurency'"),
  ]);
  expect(await shellProblems('eval "$(offsite complete-me bash)" | npx offsite rnu')).toHaveLength(2);
  expect(await shellProblems('npm run no-such-script && sudo offsite daemon instal')).toHaveLength(2);
  expect(await shellProblems('curl -s http://a/v1/evals.claimTrial -d \'{"id": 1}\'')).toHaveLength(1);
  expect(await shellProblems('offsite run a.yaml < missing.txt')).not.toEqual([]);
  expect(await shellProblems('if true; then')).not.toEqual([]);
  expect(yamlProblems('verify: true')).not.toEqual([]);
  expect(yamlProblems('modles: {}')).not.toEqual([]);
  expect(await typeProblems("import { validat } from 'offsite/validator'; validat();")).toHaveLength(1);
  expect(excerptProblems('no such line', 'README.md')).toHaveLength(1);
  expect(workflowProblems('on: push\njobs: { a: { runs_on: x, steps: [] } }')).not.toEqual([]);
});

test.for(['.github/workflows/ci.yml', 'examples/github-action/evals.yml'])(
  'GitHub takes the workflow %s, and its shells take the scripts',
  async (path) => {
    const content = readFileSync(join(root, path), 'utf8');
    const ofScripts = await Promise.all(scriptsOf(content).map(shellProblems));
    expect([...workflowProblems(content), ...ofScripts.flat()]).toEqual([]);
  },
);

test('GitLab takes the job of examples/gitlab-ci.yml, and its shell takes the script', async () => {
  const content = readFileSync(join(root, 'examples/gitlab-ci.yml'), 'utf8');
  const ofScripts = await Promise.all(scriptsOf(content).map(shellProblems));
  expect([...(await gitlabProblems(content)), ...ofScripts.flat()]).toEqual([]);
  const wrong = await gitlabProblems(content.replace('resource_group:', 'resource_groups:'));
  expect(wrong.join('\n')).toContain("'resource_groups' property is not expected");
});
