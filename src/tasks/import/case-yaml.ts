import { realpathSync } from 'node:fs';
import { posix, relative, sep } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { EnvironmentSource } from '../../suite/environment.ts';
import type { StepSource } from '../../suite/suite-file.ts';
import type { OracleSource, TestNames, TestsSource } from '../../suite/tests-source.ts';
import { TaskFiles } from '../files-below.ts';
import type { Task } from '../task.ts';
import { TaskFolder } from '../task-folder.ts';

/** A part of a case that a suite file cannot express. */
export class NotCarried extends Error {}

/** A case as a suite file says it, and the files beside the suite that it needs. */
export interface ImportedCase {
  /** Keys of a case of a suite file. */
  yaml: Record<string, unknown>;
  /** What is put into the case's folder, by its path there. */
  files: { path: string; content: Buffer | string; isExecutable: boolean }[];
  /** Folders for them, which may be empty. */
  folders: string[];
  /** Folders of the host that are copied whole into the case's folder. */
  copied: { from: string; to: string }[];
}

/** How many names of tests, and how many characters of them, stand in the suite itself. */
const inline = { names: 10, characters: 1000 };

/**
 * The case of a task as a part of a suite file, with paths into the case's folder. What a suite has no key
 * for, its schema refuses.
 *
 * @param place of the task
 * @param folder the case's folder, relative to the suite
 * @param shared folders of the host that are written once for all cases, and where, relative to the suite
 */
export function caseYaml(
  place: string,
  { entry, named }: Pick<Task, 'entry' | 'named'>,
  folder: string,
  shared: ReadonlyMap<string, string>,
): ImportedCase {
  const reading = new TaskFiles(place, named, { reach: new TaskFolder(place).reach });
  const files: ImportedCase['files'] = [];
  const folders: string[] = [];
  const copied: ImportedCase['copied'] = [];
  const putText = (path: string, content: string) => {
    files.push({ path, content, isExecutable: false });
    return posix.join(folder, path);
  };
  const putFile = (path: string, from: string) => {
    files.push({ path, ...reading.file(from) });
    return posix.join(folder, path);
  };
  const putFolder = (to: string, from: string) => {
    folders.push(to);
    files.push(...reading.folder(from, to));
    return posix.join(folder, to);
  };
  const copy = (to: string, from: string) => {
    const known = shared.get(realpathSync(from));
    if (known !== undefined) return known;
    copied.push({ from, to });
    return posix.join(folder, to);
  };
  // Each folder and each file has a place of its own: no file is written through a link of a folder.
  const placed = (
    { folders = {}, files = {} }: Pick<EnvironmentSource, 'files' | 'folders'>,
    name: string,
    put: typeof copy,
  ) => ({
    folders: Object.fromEntries(
      Object.entries(folders).map(([to, from], index) => [
        to,
        put(index === 0 ? name : `${name}-${index + 1}`, from),
      ]),
    ),
    files: Object.fromEntries(
      Object.entries(files).map(([to, from]) => [to, putFile(posix.join(`${name}-single`, to), from)]),
    ),
  });
  const built = (build: EnvironmentSource['build'], to: string) =>
    build && {
      ...build,
      context: copy(to, build.context),
      dockerfile: insideOf(build.context, build.dockerfile),
    };
  const environment = ({ services = {}, ...own }: EnvironmentSource, at: string) => ({
    ...own,
    build: built(own.build, posix.join(at, 'environment')),
    ...placed(own, posix.join(at, 'files'), copy),
    services: Object.fromEntries(
      Object.entries(services).map(([name, service]) => {
        const below = posix.join(at, 'services', name.replaceAll(/[^\w.-]/g, '_'));
        const files = placed(service, posix.join(below, 'files'), copy);
        return [name, { ...service, build: built(service.build, posix.join(below, 'context')), ...files }];
      }),
    ),
  });
  const names = (given: TestNames, path: string) => {
    const few = Array.isArray(given) && given.length <= inline.names;
    if (!Array.isArray(given) || (few && given.join('').length <= inline.characters)) return given;
    return { file: putText(path, `${JSON.stringify(given, undefined, 2)}\n`) };
  };
  const tests = ({ patch, named, brings, ...own }: TestsSource, at: string) => ({
    ...own,
    ...placed(own, posix.join(at, 'tests'), putFolder),
    in: own.in === 'same' ? undefined : own.in,
    threshold: own.threshold === 1 ? undefined : own.threshold,
    environment: own.environment && environment(own.environment, posix.join(at, 'verifier')),
    brings: Array.isArray(brings) ? brings.map((one) => (one.except.length === 0 ? one.path : one)) : brings,
    patch: patch && {
      ...patch,
      source: { file: putText(posix.join(at, 'tests.patch'), String(patch.source)) },
    },
    named: named && {
      ...named,
      failToPass: names(named.failToPass, posix.join(at, 'fail-to-pass.json')),
      passToPass: names(named.passToPass, posix.join(at, 'pass-to-pass.json')),
    },
  });
  const solution = (own: OracleSource, at: string) => ({
    ...own,
    ...placed(own, posix.join(at, 'solution'), putFolder),
  });
  const step = (own: StepSource, index: number) => {
    const at = `steps/${index + 1}-${own.name.replaceAll(/[^\w-]+/g, '_').slice(0, 50)}`;
    return {
      ...own,
      ...placed(own, posix.join(at, 'workdir'), putFolder),
      agent: isDeepStrictEqual(own.agent, entry.agent ?? {}) ? undefined : own.agent,
      tests: tests(own.tests, at),
      solution: own.solution && solution(own.solution, at),
    };
  };
  const { overall } = entry;
  const yaml = asWritten({
    ...entry,
    environment: entry.environment && environment(entry.environment, ''),
    tests: entry.tests && tests(entry.tests, ''),
    steps: entry.steps?.map(step),
    solution:
      typeof entry.solution === 'object' && 'command' in entry.solution
        ? solution(entry.solution, '')
        : undefined,
    overall: overall && {
      rewards: overall.rewards === 'mean' ? undefined : overall.rewards,
      threshold: overall.threshold === 1 ? undefined : overall.threshold,
    },
  });
  return { yaml: yaml as ImportedCase['yaml'], files, folders, copied };
}

/** The way from a folder to a file in it. */
function insideOf(folder: string, file: string): string {
  // Of the user's own build, the Dockerfile is relative already.
  if (!posix.isAbsolute(file)) return file;
  const way = relative(folder, file);
  if (way.startsWith('..')) throw new NotCarried(`its Dockerfile ${file} is outside of its context`);
  return posix.normalize(way.split(sep).join('/'));
}
/** Keys whose numbers are milliseconds. */
const times = new Set(['timeout', 'interval', 'startPeriod', 'build', 'harness']);

/** Keys whose numbers are bytes. */
const sizes = new Set(['memory', 'disk']);

/** Keys of lists that say something when they are empty: no host, no argument. */
const emptyLists = new Set(['hosts', 'command', 'entrypoint', 'args', 'sealed', 'failToPass']);

/** Maps that do: the image's own program, an agent that gets nothing of its case's. */
const emptyMaps = new Set(['startUp', 'agent']);

/** A value as a suite file has it: times and sizes with their units, and no keys that say nothing. */
function asWritten(value: unknown, key = ''): unknown {
  // Rewards have any names.
  if (key === 'threshold') return value;
  if (typeof value === 'number' && times.has(key)) return duration(value);
  if (typeof value === 'number' && sizes.has(key))
    return value % 1024 ** 2 === 0 ? `${value / 1024 ** 2}m` : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => asWritten(each));
  const members = Object.entries(value).map(([name, each]) => [name, asWritten(each, name)] as const);
  return Object.fromEntries(members.filter(([name, each]) => !saysNothing(name, each)));
}

function saysNothing(key: string, value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0 && !emptyLists.has(key);
  if (typeof value === 'object' && value !== null)
    return Object.keys(value).length === 0 && !emptyMaps.has(key);
  return value === undefined;
}

/** @param ms whole milliseconds */
function duration(ms: number): string {
  if (ms % 60_000 === 0 && ms > 0) return `${ms / 60_000}m`;
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
