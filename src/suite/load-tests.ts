import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
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
import { BadFile, issueIn } from './file-issues.ts';
import { environmentOf, fileAt } from './load-environment.ts';
import type { ReadFile } from './read-file.ts';
import type { CaseSource } from './suite-file.ts';
import type { SuitePart } from './suite-part.ts';
import { NamesFile, type OracleSource, type TestNames, type TestsSource } from './tests-source.ts';
import { expandVariables, type Variables } from './variables.ts';

/** The tests of a case with their files. What is wrong with these is reported. */
export function plannedTests(source: TestsSource, part: SuitePart): CaseTests {
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
    ...(hosts && { network: { hosts, at: part.at('hosts').place } }),
    ...(fresh && { fresh }),
    reading: readingOf(source, part),
  };
}

function readingOf({ rewards, prints, named }: TestsSource, part: SuitePart): TestReading {
  if (rewards) return { kind: 'reward-files', ...rewards };
  if (!named) return { kind: 'printed-tests', parser: prints ?? 'pytest' };
  const { parser, report } = named;
  return {
    kind: 'named-tests',
    parser,
    report,
    failToPass: namesOf(named.failToPass, part.at('named', 'failToPass')),
    passToPass: namesOf(named.passToPass, part.at('named', 'passToPass')),
  };
}

/** The names of tests, inline or in JSON. */
function namesOf(given: TestNames, part: SuitePart): string[] {
  if (Array.isArray(given)) return given;
  const file = part.resolve(given.file);
  const names = part.attempt(() => {
    const read = NamesFile.safeParse(parseCheckedJson(part.files.text(file)));
    if (read.success) return read.data;
    throw new BadFile([issueIn(file, 'expected a list of names in JSON')]);
  }, given.file);
  return names ?? [];
}

/** Where the tests run, if not in the agent's own sandbox. */
function freshTests(source: TestsSource, emptied: string[], part: SuitePart): FreshTests | undefined {
  const { environment: own, brings, sealed = emptied, patch, restored = [] } = source;
  if (source.in === 'same' || brings === undefined) return undefined;
  const environment = own && environmentOf(own, part);
  if (brings === 'workspace') {
    const testPatch = patch ? part.at('patch', 'source').text(patch.source) : '';
    const { base = 'HEAD' } = patch ?? {};
    return { environment, brought: { kind: 'workspace', testPatch, base, restored } };
  }
  const artifacts = brings.map(({ path, except }) => ({ path, exclude: except }));
  return { environment, brought: { kind: 'artifacts', artifacts, sealed } };
}

/** A solution with its files. What is wrong with these is reported. */
export function plannedOracle(
  { command, folders = {}, files = {}, env = {} }: OracleSource,
  part: SuitePart,
): CaseOracle {
  return { files: placedFiles({ folders, files }, part), command, env };
}

/** By their path in the sandbox. Links are followed. What is wrong with them is reported. */
export function placedFiles(
  { folders, files }: { folders: Record<string, string>; files: Record<string, string> },
  part: SuitePart,
): PlacedFile[] {
  const placed = new Map<string, PlacedFile>();
  const put = (to: string, file: ReadFile) => placed.set(to, fileAt(to, file));
  for (const [to, from] of Object.entries(folders))
    part.at('folders').attempt(() => {
      for (const file of part.files.folder(part.resolve(from), to)) put(file.path, file);
    }, from);
  for (const [to, from] of Object.entries(files))
    part.at('files').attempt(() => put(to, part.files.file(part.resolve(from))), from);
  return [...placed.values()];
}

/** The file beside the validator of checks that has them. */
export const checksFile = 'checks.json';

/** The names of the checks and of the judges of a case; undefined for a validator that a case names. */
export function namesOfChecks({
  source,
  files,
}: {
  source: string;
  files: readonly { path: string; content: string }[];
}): { checks: string[]; judges: string[] } | undefined {
  const content = files.find(({ path }) => path === checksFile)?.content;
  if (source !== module || content === undefined) return undefined;
  const { checks, judges } = JSON.parse(content) as Record<'checks' | 'judges', { name: string }[]>;
  return { checks: checks.map(({ name }) => name), judges: judges.map(({ name }) => name) };
}

/** A `{{name}}` in that file, for which the validator writes the variable. */
export const unfilledName = /(?<!\\)\{\\u007b\s*([A-Za-z_][\w.-]*)\s*\}\}/;

const module = readFileSync(new URL('./checks-validator.mjs', import.meta.url), 'utf8');

/** Names are cut to this many characters. */
const nameCharacters = 100;

/** The validator that the checks and the judges of a case become. Problems are reported. */
export function validatorOfChecks(
  { checks = [], judge = [], tests }: Pick<CaseSource, 'checks' | 'judge' | 'tests'>,
  variables: Variables,
  part: SuitePart,
): Validator {
  const taken = new Set(tests && ['tests']);
  for (const [index, check] of checks.entries()) refuseCheck(check, variables, part.at('checks', index));
  const judges = [judge].flat().map((one, index) => {
    const at = part.at('judge', ...(Array.isArray(judge) ? [index] : []));
    if (one.model === undefined && (part.source.judges ?? []).length === 0)
      at.report('needs a model: name one of offsite.yaml here as `model`, or in the `judges` of the suite');
    const rubric = rubricOf(one, variables, at.at('rubric'));
    for (const [place, glob] of (one.files ?? []).entries())
      if (/^\/|(^|\/)\.\.(\/|$)/.test(glob))
        at.at('files', place).report('leads out of the workspace: expected a glob in it, such as src/**');
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

function rubricOf({ rubric: source }: JudgeSource, variables: Variables, part: SuitePart): string {
  const known = part.issues.length;
  const rubric = part.script(source, variables);
  // A file that cannot be read is reported already.
  if (part.issues.length === known && expandVariables(rubric, variables, 'keep').trim() === '')
    part.report('is empty: say what is good and what is not');
  return rubric;
}

function refuseCheck(check: CheckSource, variables: Variables, part: SuitePart): void {
  for (const [key, value] of Object.entries(check))
    for (const text of [value].flat())
      if (typeof text === 'string') part.at(key).refuseUnknownNames(text, variables);
  const { equals, contains, matches } = check;
  if (matches !== undefined && !matches.includes('{{'))
    part.at('matches').attempt(() => new RegExp(matches, 'mu'));
  const compares = equals !== undefined || contains !== undefined || matches !== undefined;
  if ('absent' in check && check.absent && compares)
    part.at('absent').report('a file that must not exist has nothing to compare');
  if ('json' in check && !compares)
    part.report('says nothing about the value: add equals, contains or matches');
}

function nameOf(check: CheckSource): string {
  const { equals, contains, matches } = check;
  const said = [
    'run' in check && check.exitCode && `exits with ${check.exitCode}`,
    equals !== undefined && `equals ${JSON.stringify(equals)}`,
    contains !== undefined &&
      `contains ${[contains]
        .flat()
        .map((text) => JSON.stringify(text))
        .join(', ')}`,
    matches !== undefined && `matches /${matches}/`,
  ].filter(Boolean);
  const what =
    'run' in check ? (check.run.split('\n')[0] ?? '') : 'file' in check ? check.file : jsonPlace(check);
  if ('absent' in check && check.absent) return `${what} is absent`;
  if (said.length > 0) return `${what} ${said.join(', ')}`;
  return 'run' in check ? what : `${what} exists`;
}

function jsonPlace({ json, at }: { json: string; at?: string | undefined }): string {
  return at ? `${json} at ${at}` : json;
}

function unusedName(wanted: string, taken: Set<string>): string {
  const cut = wanted.length <= nameCharacters ? wanted : `${wanted.slice(0, nameCharacters - 1)}…`;
  let name = cut;
  for (let count = 2; taken.has(name); count++) name = `${cut} (${count})`;
  taken.add(name);
  return name;
}
