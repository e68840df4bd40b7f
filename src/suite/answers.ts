import { createHash } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { join, sep } from 'node:path';
import { visibleAnswers } from '../bounds/sandbox.ts';
import { type AnswerPart, partsOfFile, partsOfScript } from './answer-lines.ts';
import { type BuildContext, contextEntries } from './build-context.ts';
import type { Answer, CaseOracle, CaseTests } from './case-tests.ts';
import type { PlacedFile } from './environment.ts';
import type { PlannedCase } from './plan.ts';
import { realPaths } from './read-file.ts';
import type { SuiteFile } from './suite-file.ts';

const verifyName = 'the verify script';

export interface Hiding {
  /** The files and folders that grade and solve, as absolute paths. */
  own: readonly string[];
  /** The suite's file, if the case is written in it. */
  suite?: Buffer | undefined;
  /** The files that the author gives to the agent by their names. */
  givenFiles?: readonly PlacedFile[] | undefined;
  /** The folders that the author gives to the agent, as absolute paths, besides the build context. */
  givenFolders?: readonly string[] | undefined;
}

/** What grades and solves a case, without what it gives to the agent. Throws as `contextEntries` does. */
export function answersOf({ request, local }: PlannedCase, hiding: Hiding): Answer[] {
  const { verify, validator } = request;
  const found: Found[] = [
    ...inForms('the solution', local.solution, (text) => partsOfScript(text, 'code')),
    // Its lines are mostly commands that the project itself has in its scripts.
    ...inForms(verifyName, verify, () => []),
    ...inForms('the validator', validator?.source, (text) => partsOfFile('.js', Buffer.from(text))),
    ...(validator?.sourceFiles ?? []).map(
      ({ path, content }): Found => [
        `${path} of the validator`,
        content,
        partsOfFile(path, Buffer.from(content)),
      ],
    ),
    ...filesOf(local),
    ...(local.steps?.list ?? []).flatMap(filesOf),
    [suiteName, hiding.suite],
  ];
  const answers = new Map<string, Answer>();
  for (const [name, content, parts = []] of found) {
    if (content === undefined) continue;
    const bytes = Buffer.from(content);
    if (bytes.length < visibleAnswers.bytes.smallest) continue;
    const answer = answerOf(name, bytes);
    if (!answers.has(answer.sha256))
      answers.set(answer.sha256, { ...answer, ...(parts.length > 0 && { parts }) });
  }
  for (const sha256 of givenBy({ local }, hiding, sizesOf(answers.values()))) answers.delete(sha256);
  return [...answers.values()].slice(0, visibleAnswers.count.answers);
}

/**
 * A script with other ends of lines, and with or without the last one, is as good: YAML and editors change
 * them.
 */
function inForms(name: string, text: string | undefined, partsOf: (text: string) => AnswerPart[]): Found[] {
  if (text === undefined) return [];
  const plain = text.replaceAll('\r\n', '\n').trimEnd();
  const forms = [text, plain, `${plain}\n`, `${plain}\n`.replaceAll('\n', '\r\n')];
  return forms.map((form, index) => [name, form, index === 0 ? partsOf(plain) : []]);
}

type Found = [name: string, content: Buffer | string | undefined, parts?: AnswerPart[]];

/**
 * What grades and solves any case of a suite, once. No agent may find that of another case, unless its own
 * case gives it the file.
 */
export function answersOfSuite(cases: readonly PlannedCase[]): Answer[] {
  if (cases.length < 2) return [];
  const all = new Map<string, Answer>();
  // That of another case may be a test of the project that this case is about, too. Only whole files count: a
  // later commit of a project has the lines of earlier fixes and their tests.
  for (const { request, local } of cases)
    for (const { name, parts: _, ...answer } of local.answers ?? [])
      if (!answer.ofSuite && name !== verifyName && !all.has(answer.sha256))
        all.set(answer.sha256, { ...answer, name: `${name} of case ${request.id}`, ofSuite: true });
  return [...all.values()].slice(0, visibleAnswers.count.answers);
}

/** The cases of a suite, each with the answers of others that it gives to its agent itself. */
export function withGiven(cases: readonly { planned: PlannedCase; hiding: Hiding }[]): PlannedCase[] {
  const answers = answersOfSuite(cases.map(({ planned }) => planned));
  const [sizes, known] = [sizesOf(answers), new Set(answers.map(({ sha256 }) => sha256))];
  return cases.map(({ planned, hiding }) => {
    const given = [...new Set(givenBy(planned, hiding, sizes))].filter((sha256) => known.has(sha256));
    return given.length === 0 ? planned : { ...planned, local: { ...planned.local, given } };
  });
}

function sizesOf(answers: Iterable<Answer>): Set<number> {
  return new Set([...answers].map(({ size }) => size));
}

/**
 * The hashes of files of these sizes that the author gives to the agent: those that are named, and copies in
 * a folder or in the build context. A file that grades or solves is no copy there: it was swept in.
 */
function* givenBy(
  { local }: Pick<PlannedCase, 'local'>,
  { own, givenFiles = [], givenFolders = [] }: Hiding,
  sizes: ReadonlySet<number>,
): Generator<string> {
  if (sizes.size === 0) return;
  for (const file of givenFiles)
    if ('content' in file && sizes.has(file.content.length)) yield sha256Of(file.content);
  const { build } = local.environment;
  const contexts = [
    ...givenFolders.map((folder) => ({ folder, ignore: '' })),
    ...(build ? [build.context] : []),
  ];
  yield* copiesIn(contexts, own, sizes);
}

function filesOf({ tests, oracle }: { tests?: CaseTests | undefined; oracle?: CaseOracle | undefined }) {
  const brought = tests?.fresh?.brought;
  return [
    ...placed(oracle?.files, 'the solution'),
    ...placed(tests?.files, 'the tests'),
    ...placed(tests?.fresh?.environment?.files, 'the tests'),
    ...(brought?.kind === 'workspace' ? [theTestPatch(brought.testPatch)] : []),
  ];
}

function theTestPatch(patch: string): Found {
  return ['the test patch', patch, partsOfFile('.patch', Buffer.from(patch))];
}

function placed(files: readonly PlacedFile[] = [], of: 'the solution' | 'the tests'): Found[] {
  return files.flatMap((file): Found[] => {
    if (!('content' in file)) return [];
    const { path, content } = file;
    const parts = partsOfFile(path, content, of === 'the solution' ? 'code' : 'commands');
    return [[`${path.replace(/^\//, '')} of ${of}`, content, parts]];
  });
}

function answerOf(name: string, content: Buffer): Answer {
  const blob = Buffer.concat([Buffer.from(`blob ${content.length}\0`), content]);
  const blobs = ['sha1', 'sha256'].map((algorithm) => createHash(algorithm).update(blob).digest('hex'));
  const ofSuite = name === suiteName ? { ofSuite: true as const } : {};
  return { name, ...ofSuite, size: content.length, sha256: sha256Of(content), blobs };
}

const suiteName = 'the suite file';

/** The hashes of files of these sizes that are not below `own`. */
function* copiesIn(
  contexts: readonly BuildContext[],
  own: readonly string[],
  sizes: ReadonlySet<number>,
): Generator<string> {
  if (contexts.length === 0) return;
  const kept = realPaths(own);
  const isOwn = (path: string) => kept.some((each) => path === each || path.startsWith(`${each}${sep}`));
  for (const context of contexts) {
    for (const { path, type, size } of contextEntries(context)) {
      if (type !== 'file' || !sizes.has(size)) continue;
      const file = realpathSync(join(context.folder, path));
      if (!isOwn(file)) yield sha256Of(readFileSync(file));
    }
  }
}

function sha256Of(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * The files and folders that a suite names to grade and to solve, and prompts, as it names them. Not what a
 * case puts into the workspace.
 *
 * @param cases default: all
 */
export function namedFiles({ suite, cases = [] }: Pick<SuiteFile, 'suite' | 'cases'>): string[] {
  const ofCases = cases.map(({ environment: _, source: __, variables: ___, steps = [], ...own }) => [
    own,
    steps.map(({ files: _, folders: __, ...step }) => step),
  ]);
  return filesIn([suite.prompt, ofCases]);
}

function filesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(filesIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]: [string, unknown]) => {
    if (key === 'env' || key === 'environment') return [];
    if (key === 'file' && typeof member === 'string') return [member];
    if (key === 'sourceFiles') return member as string[];
    if (key === 'files' || key === 'folders') return Object.values(member as Record<string, string>);
    return filesIn(member);
  });
}
