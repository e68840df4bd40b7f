import { readFileSync } from 'node:fs';
import type { Validator } from '../contract/definition.ts';
import type { CheckSource, JudgeSource } from './checks-source.ts';
import type { CaseSource } from './suite-file.ts';
import type { SuiteReader } from './suite-reader.ts';
import { expandVariables, type Variables } from './variables.ts';
import type { Path } from './yaml-file.ts';

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
  const named = checks.map((check) => ({ ...check, name: unusedName(check.name ?? nameOf(check), taken) }));
  const manifest = [...named, ...judges].map(({ name }, index) => ({ index, name }));
  // The validator expands variables itself: in JSON, a value with quotes would end its text.
  const content = JSON.stringify({ checks: named, judges }, null, 2).replaceAll('{{', '{\\u007b');
  return { name: 'checks', source: module, manifest, sourceFiles: [{ path: 'checks.json', content }] };
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
