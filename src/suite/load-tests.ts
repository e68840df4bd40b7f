import { readFileSync } from 'node:fs';
import { posix, resolve } from 'node:path';
import { parseCheckedJson } from '../base/parse-json.ts';
import type { Validator } from '../contract/definition.ts';
import {
  type CaseOracle,
  type CaseTests,
  type FreshTests,
  type TestReading,
  thresholdsOf,
} from './case-tests.ts';
import type { CheckSource, JudgeSource } from './checks-source.ts';
import type { PlacedFile } from './environment.ts';
import { BadFile } from './file-issues.ts';
import type { FileReader } from './read-file.ts';
import type { CaseSource } from './suite-file.ts';
import type { SuiteReader } from './suite-reader.ts';
import { NamesFile, type OracleSource, type TestNames, type TestsSource } from './tests-source.ts';
import { expandVariables, type Variables } from './variables.ts';
import type { Path } from './yaml-file.ts';

/** Where a part of a case is, and what its files are read with. */
export interface CasePart {
  path: Path;
  reader: SuiteReader;
  /** For all files of the case. */
  files: FileReader;
}

/** The tests of a case with their files. What is wrong with these is reported. */
export function plannedTests(source: TestsSource, part: CasePart): CaseTests {
  const { folders = {}, files = {}, command, env = {}, user, timeout, rewards, named, threshold } = source;
  const { collect = [], hosts } = source;
  const targets = [...Object.keys(folders), ...Object.keys(files).map((file) => posix.dirname(file))];
  // A file that the agent left there could be taken for a test, or for what the tests write.
  const written = rewards ? [rewards.json, rewards.text] : named ? [named.report] : [];
  const emptied = [...new Set([...targets, ...written.map((file) => posix.dirname(file))])];
  const fresh = freshTests(source, emptied, part);
  return {
    files: placedFiles({ folders, files }, part),
    emptied,
    command,
    env,
    user,
    timeoutMs: timeout,
    thresholds: thresholdsOf(threshold),
    ...(collect.length > 0 && {
      collect: collect.map(({ timeout, ...each }) => ({ ...each, timeoutMs: timeout })),
    }),
    ...(hosts && { network: { hosts, at: part.reader.issueAt([...part.path, 'hosts']) } }),
    ...(fresh && { fresh }),
    reading: readingOf(source, part),
  };
}

function readingOf({ rewards, prints, named }: TestsSource, part: CasePart): TestReading {
  if (rewards) return { kind: 'reward-files', ...rewards };
  if (!named) return { kind: 'printed-tests', parser: prints ?? 'pytest' };
  const { parser, report } = named;
  return {
    kind: 'named-tests',
    parser,
    report,
    failToPass: namesOf(named.failToPass, 'failToPass', part),
    passToPass: namesOf(named.passToPass, 'passToPass', part),
  };
}

/** The names of tests, inline or in JSON. */
function namesOf(given: TestNames, key: string, { path, reader, files }: CasePart): string[] {
  if (Array.isArray(given)) return given;
  const { folder } = reader.parts;
  return (
    reader.attempt([...path, 'named', key], given.file, () => {
      const names = NamesFile.safeParse(parseCheckedJson(files.text(resolve(folder, given.file))));
      if (names.success) return names.data;
      throw new BadFile([
        {
          file: resolve(folder, given.file),
          line: 1,
          column: 1,
          path: '',
          message: 'expected a list of names in JSON',
        },
      ]);
    }) ?? []
  );
}

/** Where the tests run, if not in the agent's own sandbox. */
function freshTests(
  source: TestsSource,
  emptied: string[],
  { path, reader }: CasePart,
): FreshTests | undefined {
  const { environment: own, brings, sealed = emptied, patch, restored = [] } = source;
  if (source.in === 'same' || brings === undefined) return undefined;
  const environment = own && reader.environment(own, path);
  if (brings === 'workspace') {
    const testPatch = patch ? reader.text(patch.source, [...path, 'patch', 'source']) : '';
    const { base = 'HEAD' } = patch ?? {};
    return { environment, brought: { kind: 'workspace', testPatch, base, restored } };
  }
  const artifacts = brings.map(({ path, except }) => ({ path, exclude: except }));
  return { environment, brought: { kind: 'artifacts', artifacts, sealed } };
}

/** A solution with its files. What is wrong with these is reported. */
export function plannedOracle(
  { command, folders = {}, files = {}, env = {} }: OracleSource,
  part: CasePart,
): CaseOracle {
  return { files: placedFiles({ folders, files }, part), command, env };
}

/** By their path in the sandbox. Links are followed. What is wrong with them is reported. */
export function placedFiles(
  { folders, files }: { folders: Record<string, string>; files: Record<string, string> },
  { path, reader, files: read }: CasePart,
): PlacedFile[] {
  const { folder } = reader.parts;
  const placed = new Map<string, PlacedFile>();
  const put = (to: string, { content, isExecutable }: { content: Buffer; isExecutable: boolean }) =>
    placed.set(to, { path: to, content, mode: isExecutable ? 0o755 : 0o644 });
  for (const [to, from] of Object.entries(folders))
    reader.attempt([...path, 'folders'], from, () => {
      for (const file of read.folder(resolve(folder, from), to)) put(file.path, file);
    });
  for (const [to, from] of Object.entries(files))
    reader.attempt([...path, 'files'], from, () => put(to, read.file(resolve(folder, from))));
  return [...placed.values()];
}

/** The file beside the validator of checks that has them. */
export const checksFile = 'checks.json';

/** A `{{name}}` in that file, for which the validator writes the variable. */
export const unfilledName = /(?<!\\)\{\\u007b\s*([A-Za-z_][\w.-]*)\s*\}\}/;

const module = readFileSync(new URL('./checks-validator.mjs', import.meta.url), 'utf8');

/** Names are cut to this many characters. */
const nameCharacters = 100;

/**
 * The validator that the checks and the judges of a case become. Problems are reported.
 *
 * @param path of the case
 */
export function validatorOfChecks(
  { checks = [], judge = [], tests }: Pick<CaseSource, 'checks' | 'judge' | 'tests'>,
  variables: Variables,
  path: Path,
  reader: SuiteReader,
): Validator {
  const taken = new Set(tests && ['tests']);
  for (const [index, check] of checks.entries())
    refuseCheck(check, variables, [...path, 'checks', index], reader);
  const judges = [judge].flat().map((one, index) => {
    const at = [...path, 'judge', ...(Array.isArray(judge) ? [index] : [])];
    if (one.model === undefined && (reader.source.judges ?? []).length === 0)
      reader.report(
        at,
        'needs a model: name one of offsite.yaml here as `model`, or in the `judges` of the suite',
      );
    const rubric = rubricOf(one, variables, at, reader);
    for (const [place, glob] of (one.files ?? []).entries())
      if (/^\/|(^|\/)\.\.(\/|$)/.test(glob))
        reader.report(
          [...at, 'files', place],
          'leads out of the workspace: expected a glob in it, such as src/**',
        );
    return { ...one, rubric, name: unusedName(one.name ?? 'judge', taken) };
  });
  const named = checks.map((check) => ({
    ...check,
    name: unusedName(expandVariables(check.name ?? nameOf(check), variables, 'keep'), taken),
  }));
  const manifest = [...named, ...judges].map(({ name }, index) => ({ index, name }));
  // The validator expands variables itself: in JSON, a value with quotes would end its text.
  const content = JSON.stringify({ checks: named, judges }, null, 2).replaceAll('{{', '{\\u007b');
  return { name: 'checks', source: module, manifest, sourceFiles: [{ path: checksFile, content }] };
}

function rubricOf(
  { rubric: source }: JudgeSource,
  variables: Variables,
  at: Path,
  reader: SuiteReader,
): string {
  const path = [...at, 'rubric'];
  const known = reader.issues.length;
  const rubric = reader.script(source, variables, path);
  // A file that cannot be read is reported already.
  if (reader.issues.length === known && expandVariables(rubric, variables, 'keep').trim() === '')
    reader.report(path, 'is empty: say what is good and what is not');
  return rubric;
}

function refuseCheck(check: CheckSource, variables: Variables, path: Path, reader: SuiteReader): void {
  for (const [key, value] of Object.entries(check))
    for (const text of [value].flat())
      if (typeof text === 'string') reader.refuseUnknownNames(text, variables, [...path, key], '');
  const { matches } = check;
  try {
    if (matches !== undefined && !matches.includes('{{')) new RegExp(matches, 'mu');
  } catch (error) {
    reader.report([...path, 'matches'], (error as Error).message);
  }
  const compares = check.equals !== undefined || check.contains !== undefined || matches !== undefined;
  if ('absent' in check && check.absent && compares)
    reader.report([...path, 'absent'], 'a file that must not exist has nothing to compare');
  if ('json' in check && !compares)
    reader.report(path, 'says nothing about the value: add equals, contains or matches');
}

function nameOf(check: CheckSource): string {
  const what =
    'run' in check
      ? (check.run.split('\n')[0] ?? '')
      : 'json' in check
        ? `${check.json}${check.at ? ` at ${check.at}` : ''}`
        : check.file;
  if ('absent' in check && check.absent) return `${what} is absent`;
  const { equals, contains, matches } = check;
  const said = [
    ...(equals === undefined ? [] : [`equals ${JSON.stringify(equals)}`]),
    ...(contains === undefined
      ? []
      : [
          `contains ${[contains]
            .flat()
            .map((text) => JSON.stringify(text))
            .join(', ')}`,
        ]),
    ...(matches === undefined ? [] : [`matches /${matches}/`]),
  ];
  if ('run' in check && check.exitCode) said.unshift(`exits with ${check.exitCode}`);
  if (said.length === 0) return 'run' in check ? what : `${what} exists`;
  return `${what} ${said.join(', ')}`;
}

function unusedName(wanted: string, taken: Set<string>): string {
  const cut = wanted.length <= nameCharacters ? wanted : `${wanted.slice(0, nameCharacters - 1)}…`;
  let name = cut;
  for (let count = 2; taken.has(name); count++) name = `${cut} (${count})`;
  taken.add(name);
  return name;
}
