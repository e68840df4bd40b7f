import type { Case } from '../contract/definition.ts';
import type { FileIssue } from './file-issues.ts';
import type { PlannedCase } from './plan.ts';
import { type CaseSource, SuiteFile, type VariantSource } from './suite-file.ts';
import { withoutReferences } from './variables.ts';
import { type Path, readYamlFile } from './yaml-file.ts';

/** `sent` with the request; `local` to this machine; `unused` by trials. */
type Fields<Source> = Readonly<Record<keyof Source & string, 'sent' | 'local' | 'unused'>>;

const suiteFields: Fields<SuiteFile> = {
  suite: 'sent',
  trials: 'sent',
  variants: 'sent',
  cases: 'sent',
  judges: 'local',
  artifacts: 'local',
  environment: 'local',
  tasks: 'local',
  source: 'local',
};

const variantFields: Fields<VariantSource> = {
  model: 'sent',
  harness: 'sent',
  sandbox: 'sent',
  name: 'unused',
  // Who runs it uses the profile that its configuration has for the harness.
  profile: 'sent',
  userModel: 'local',
};

const caseFields: Fields<CaseSource> = {
  id: 'sent',
  name: 'sent',
  tags: 'sent',
  variables: 'sent',
  source: 'sent',
  prepare: 'sent',
  verify: 'sent',
  validator: 'sent',
  checks: 'sent',
  judge: 'sent',
  user: 'sent',
  solution: 'unused',
  protected: 'local',
  artifacts: 'local',
  environment: 'local',
  tests: 'local',
  agent: 'local',
  artifactsExcept: 'local',
  steps: 'local',
  overall: 'local',
};

/**
 * The settings of a suite file that decide how its trials run and that no request to a service can carry,
 * with their positions. Throws as `readYamlFile` does.
 *
 * @param profiles `daemon.profiles`, by which daemons that share a configuration know a profile
 * @param isSelected whether the variant at this index is started
 * @param forDaemons the cases as they are sent, if daemons run them: these get texts, and no variables
 */
export function uncarried(
  file: string,
  profiles: Readonly<Record<string, string>> | undefined,
  isSelected: (variant: number) => boolean,
  forDaemons: readonly PlannedCase[] = [],
): FileIssue[] {
  const { value, issue } = readYamlFile(file, SuiteFile);
  const variants = value.variants.flatMap((variant, index) =>
    isSelected(index) ? [{ variant, index }] : [],
  );
  const foreign = variants.filter(
    ({ variant: { harness, profile } }) => profile !== undefined && profiles?.[harness] !== profile,
  );
  const paths: Path[] = [
    ...localIn(value, suiteFields, []),
    ...variants.flatMap(({ variant, index }) => localIn(variant, variantFields, ['variants', index])),
    ...(value.cases ?? []).flatMap((one, index) => [
      ...localIn(one, caseFields, ['cases', index]),
      ...localPartsOf(one, ['cases', index]),
    ]),
  ];
  return [
    ...paths.map((path) => issue(path, notCarried())),
    ...foreign.map(({ variant: { harness, profile }, index }) =>
      issue(['variants', index, 'profile'], notCarried(profiles && { [harness]: profile })),
    ),
    ...forDaemons.flatMap(({ request }, index) =>
      variablesReadIn(request, value.cases?.[index]).map(({ name, message }) =>
        issue(['cases', index, 'variables', name], message),
      ),
    ),
  ];
}

/** @param profiles what would carry a profile, as `daemon.profiles` */
function notCarried(profiles: Record<string, string | undefined> = {}): string {
  const [[harness, profile] = []] = Object.entries(profiles);
  const remedy =
    harness === undefined
      ? ''
      : `: write daemon.profiles: { ${harness}: ${profile} } into offsite.yaml, here and where it runs`;
  return `a request to a service cannot carry this${remedy}`;
}

/**
 * The variables of a case that something may read while a trial runs. The setup of a run, which is all that
 * daemons get, has no variables: a script would find nothing, and might pass for it.
 */
function variablesReadIn(
  { variables = {}, prepare, verify, validator }: Case,
  { checks, judge }: Pick<CaseSource, 'checks' | 'judge'> = {},
) {
  const files = (validator?.sourceFiles ?? []).map(({ content }) => content);
  // The validator of checks and judges is Offsite's own.
  const source = checks || judge ? undefined : validator?.source;
  const scripts = [prepare?.source, verify, source, ...files].map((one) => withoutReferences(one ?? ''));
  return Object.keys(variables).flatMap((name) => {
    if (scripts.some((script) => mayRead(script, name))) {
      const message = `a script may read this, and daemons do not get it: write {{${name}}} there`;
      return [{ name, message }];
    }
    // A validator of checks replaces these names itself.
    const inChecks = new RegExp(`\\{\\\\u007b\\s*${escaped(name)}\\s*\\}\\}`);
    if (files.some((content) => inChecks.test(content))) {
      const message = 'a check or judge needs this, and daemons do not get it: write its value there';
      return [{ name, message }];
    }
    return [];
  });
}

/** How languages call the environment, and validators the variables. Not the `env` of a first line. */
const environment =
  /environ|getenv|lookupenv|printenv|envsubst|(?<!bin\/)\benv\b|\bvariables\b|(declare|typeset|export) -p|\(\(|(\[|test) (! )?-v /i;

/** Whether a script may read a variable. Rather yes than no: one that is empty can make a check pass. */
function mayRead(script: string, name: string): boolean {
  const word = `${escaped(name)}(?!\\w)`;
  if (new RegExp(`\\$\\{?[!#]?${word}`).test(script)) return true;
  return environment.test(script) && new RegExp(`(?<!\\w)${word}`).test(script);
}

function escaped(name: string): string {
  return name.replace(/\W/g, '\\$&');
}

/**
 * The parts of `source`, `verify`, `validator` and `user` that are local, if they differ from the default.
 */
function localPartsOf({ verify, validator, user, source }: CaseSource, at: Path): Path[] {
  const paths: Path[] = [];
  if (source && 'git' in source) paths.push([...at, 'source', 'git']);
  if (typeof verify === 'object') {
    const { in: place, keep, ignore, unexpected } = verify;
    if (place === 'same') paths.push([...at, 'verify', 'in']);
    if (keep) paths.push([...at, 'verify', 'keep']);
    if (ignore) paths.push([...at, 'verify', 'ignore']);
    if (unexpected) paths.push([...at, 'verify', 'unexpected']);
  }
  if (validator?.runsIn === 'same') paths.push([...at, 'validator', 'runsIn']);
  if (validator?.onError === 'failed') paths.push([...at, 'validator', 'onError']);
  if (user?.maxTurns !== undefined) paths.push([...at, 'user', 'maxTurns']);
  return paths;
}

function localIn<Source extends object>(value: Source, fields: Fields<Source>, at: Path): Path[] {
  const keys = Object.keys(fields) as (keyof Source & string)[];
  return keys.filter((key) => fields[key] === 'local' && value[key] !== undefined).map((key) => [...at, key]);
}
