import { posix } from 'node:path';
import { inputError } from '../../base/offsite-error.ts';
import type { EnvironmentSource } from '../../suite/environment.ts';
import type { RowTest, TasksSource } from '../../suite/tasks-source.ts';

/** What rows do not have, and the person who runs them names: their environment, and how their tests run. */
export type RowSetup = Pick<TasksSource, 'image' | 'build' | 'test'>;

/** The fields of a row that a setup may use. */
export interface SetupRow {
  instance_id: string;
  repo: string;
  base_commit: string;
  version?: string | null | undefined;
}

/** Where the container of a row starts from. Throws an `input` error for an unknown name in braces. */
export function sourceOf(
  { image, build }: RowSetup,
  row: SetupRow,
): Pick<EnvironmentSource, 'image' | 'build'> {
  if (image !== undefined) return { image: filled(image, valuesOf(row), 'image') };
  if (!build) return {};
  const args = Object.entries(build.args).map(([name, value]) => {
    return [name, filled(value, valuesOf(row), `build.args.${name}`)];
  });
  const dockerfile = posix.resolve(build.context, build.dockerfile);
  return { build: { ...build, dockerfile, args: Object.fromEntries(args) } };
}

/** Files that the tests get as they are in the image, because test runners load them by their names. */
const loadedByName = [
  'conftest.py',
  'pytest.ini',
  '.pytest.ini',
  'pytest.toml',
  '.pytest.toml',
  'sitecustomize.py',
  'usercustomize.py',
];

const usualCommands: Readonly<Record<RowTest['parser'], string>> = {
  pytest: 'pytest -rA {files}',
  'pytest-v': 'pytest -v {files}',
  junit: 'pytest --junitxml={report} {files}',
  django: './tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 {modules}',
};

const usualTimeout = 30 * 60_000;

/**
 * How the tests of a row run. Other names in braces stay as they are: Bash has some of its own.
 *
 * @param files the files of the test patch that exist after it
 * @param report where a report goes
 */
export function testRunOf({ test }: RowSetup, files: readonly string[], report: string) {
  const { parser = 'pytest', command, timeout = usualTimeout, restored = loadedByName } = test ?? {};
  const testFiles = files.filter((file) => !isData.test(file));
  const values = {
    files: testFiles.map(quoted).join(' '),
    modules: testFiles.map(moduleOf).map(quoted).join(' '),
    report,
  };
  const filledIn = (command ?? usualCommands[parser]).replace(
    /\{(files|modules|report)\}/g,
    (_, name: keyof typeof values) => values[name],
  );
  return { parser, command: filledIn, timeout, restored: [...restored] };
}

/** Files that tests read, and that a test runner does not accept as arguments. */
const isData = /\.(json|png|csv|txt|md|jpg|jpeg|pkl|yml|yaml|toml)$/;

/** As Django's tests are named: `a.tests` for `tests/a/tests.py`. */
function moduleOf(file: string): string {
  return file
    .replace(/^tests\//, '')
    .replace(/\.py$/, '')
    .replaceAll('/', '.');
}

function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) && !text.startsWith('-') ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function valuesOf({ instance_id, repo, base_commit, version }: SetupRow): Record<string, string> {
  return {
    instance_id,
    repo,
    base_commit,
    version: version ?? '',
    // As the images of SWE-bench are called, since a name may have neither capitals nor two underscores.
    docker_id: instance_id.toLowerCase().replaceAll('__', '_1776_'),
  };
}

/** A text with values in place of names in braces. */
function filled(text: string, values: Readonly<Record<string, string>>, key: string): string {
  return text.replace(/\{(\w*)\}/g, (whole, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (value !== undefined) return value;
    throw inputError('TASKS_REFUSED', `tasks.${key}: ${whole} is not known`, {
      hint: `Known names: ${Object.keys(values)
        .map((each) => `{${each}}`)
        .join(', ')}.`,
    });
  });
}
