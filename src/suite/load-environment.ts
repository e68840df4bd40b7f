import { join, posix, relative, resolve, sep } from 'node:path';
import { messageOf } from '../base/offsite-error.ts';
import { buildContexts } from '../bounds/suite.ts';
import type { KnownKeys } from '../redaction/redactor.ts';
import { type ContextEntry, contextEntries, contextHash, neverInContexts } from './build-context.ts';
import { dockerfileProblems } from './dockerfile.ts';
import type { CaseEnvironment, EnvironmentSource, PlacedFile, PlannedBuild } from './environment.ts';
import { BadFile, type FileIssue } from './file-issues.ts';
import { type FileReader, heldKey, type Reach, reachedFolder } from './read-file.ts';
import { dependenciesOf, type PlannedService, type ServiceSource } from './services.ts';

/** What environments are read with. */
export interface EnvironmentParts {
  /** The suite's. */
  folder: string;
  files: FileReader;
  reach: Exclude<Reach, 'anywhere'>;
  /** `images` of the configuration. */
  images: Record<string, string>;
  /** Keys that no context may hold. */
  keys: KnownKeys | undefined;
}

interface Reporting {
  /** @param path of keys in the environment */
  placeOf(...path: string[]): string;
  report(path: string | string[], issue: string | FileIssue): void;
}

/** An environment with what only a task can say. */
export type GivenEnvironment = EnvironmentSource & {
  placed?: PlacedFile[] | undefined;
  volumes?: string[] | undefined;
};

/** Reads the files that an environment names, and reports their problems. */
export function plannedEnvironment(
  {
    image,
    build,
    workdir,
    user,
    env = {},
    resources = {},
    healthcheck,
    timeouts,
    services,
    nameForServices,
    needs,
    startUp,
    hosts,
    volumes,
    ...placed
  }: GivenEnvironment,
  parts: EnvironmentParts & Reporting,
): CaseEnvironment {
  return {
    ...sourceOf({ image, build }, parts),
    ...(services && {
      services: Object.entries(services).map(([name, service]) => plannedService(name, service, parts)),
    }),
    ...(nameForServices !== undefined && { nameForServices }),
    workdir,
    user,
    env,
    resources,
    ...(startUp && { startUp }),
    ...(hosts && { hosts }),
    ...(healthcheck && { healthcheck }),
    ...((placed.files || placed.folders || placed.writable) && { files: placedFiles(placed, parts) }),
    ...(volumes && { volumes }),
    ...(timeouts && { timeouts }),
    ...(needs && { needs }),
  };
}

function sourceOf(
  { image, build }: Pick<EnvironmentSource, 'image' | 'build'>,
  parts: EnvironmentParts & Reporting,
) {
  return {
    ...(image !== undefined && {
      image: { name: image, mappedTo: parts.images[image], place: parts.placeOf('image') },
    }),
    ...(build && { build: plannedBuild(build, parts) }),
  };
}

/** Reads the files that a service of an environment names. */
function plannedService(
  name: string,
  { image, build, healthcheck, dependsOn, files, folders, ...service }: ServiceSource,
  environment: EnvironmentParts & Reporting,
): PlannedService {
  const parts = {
    ...environment,
    placeOf: (...path: string[]) => environment.placeOf('services', name, ...path),
    report: (path: string | string[], issue: string | FileIssue) =>
      environment.report(['services', name, ...[path].flat()], issue),
  };
  return {
    name,
    ...service,
    ...sourceOf({ image, build }, parts),
    ...(healthcheck !== undefined && { healthcheck: healthcheck === false ? 'none' : healthcheck }),
    dependsOn: dependenciesOf(dependsOn),
    ...((files || folders) && { files: placedFiles({ files, folders }, parts) }),
    place: parts.placeOf(),
  };
}

/** The files and folders that an environment puts into the sandbox. Links are kept and never followed. */
function placedFiles(
  {
    files: named = {},
    folders = {},
    placed = [],
    writable = [],
  }: Pick<GivenEnvironment, 'files' | 'folders' | 'placed' | 'writable'>,
  { folder, files, reach, report }: EnvironmentParts & Reporting,
): PlacedFile[] {
  const fileFrom = (path: string, source: string): PlacedFile => {
    const { content, isExecutable } = files.file(source);
    return { path, content, mode: isExecutable ? 0o755 : 0o644 };
  };
  const folderFrom = (path: string, source: string): PlacedFile[] => {
    const root = reachedFolder(source, reach);
    const entries = contextEntries({ folder: root, ignore: '' }, reach.except);
    return [
      ...(posix.resolve('/', path) === '/' ? [] : [{ path, folder: true as const, mode: 0o755 }]),
      ...entries.map(({ path: below, type, mode, linkTarget = '' }): PlacedFile => {
        const target = posix.join(path, below);
        if (type === 'symlink') return { path: target, linkTarget };
        if (type === 'folder') return { path: target, folder: true, mode };
        return { path: target, content: files.file(join(root, below)).content, mode };
      }),
    ];
  };
  const read = (key: string, source: string, get: () => PlacedFile[]): PlacedFile[] => {
    try {
      return get();
    } catch (error) {
      if (error instanceof BadFile) for (const issue of error.issues) report(key, issue);
      else report(key, `${source}: ${messageOf(error)}`);
      return [];
    }
  };
  return [
    ...Object.entries(folders).flatMap(([path, source]) =>
      read('folders', source, () => folderFrom(path, resolve(folder, source))),
    ),
    ...Object.entries(named).flatMap(([path, source]) =>
      read('files', source, () => [fileFrom(path, resolve(folder, source))]),
    ),
    ...placed,
    ...writable.map((path) => ({ path, folder: true as const, mode: 0o777 })),
  ];
}

function plannedBuild(
  { context, dockerfile: path, target, args }: NonNullable<EnvironmentSource['build']>,
  { folder, files, reach, images, keys, placeOf, report }: EnvironmentParts & Reporting,
): PlannedBuild | undefined {
  try {
    const contextFolder = reachedFolder(resolve(folder, context), reach);
    const file = resolve(folder, context, path);
    const dockerfile = files.text(file);
    const problems = dockerfileProblems(dockerfile, target);
    for (const { line, message } of problems) report('build', { file, line, column: 1, path: '', message });
    const ignore = [ignoreFile(file, contextFolder, files), neverInContexts].join('\n');
    const entries = contextEntries({ folder: contextFolder, ignore }, reach.except);
    const hash = contextHash(contextFolder, entries, keys && keyFinder(keys, contextFolder));
    return {
      name: relative(folder, file).split(sep).join(posix.sep),
      file,
      dockerfile,
      target,
      args,
      images,
      context: { folder: contextFolder, ignore, hash },
      place: placeOf('build'),
    };
  } catch (error) {
    if (error instanceof BadFile) for (const issue of error.issues) report('build', issue);
    else report('build', messageOf(error));
    return undefined;
  }
}

/** The patterns of the Dockerfile's own ignore file, or of the context's. */
function ignoreFile(dockerfile: string, context: string, files: FileReader): string {
  for (const file of [`${dockerfile}.dockerignore`, join(context, '.dockerignore')]) {
    if (files.exists(file)) return files.text(file);
  }
  return '';
}

function keyFinder(keys: KnownKeys, folder: string): Parameters<typeof contextHash>[2] {
  let last: { path: string; tail: Buffer } = { path: '', tail: Buffer.alloc(0) };
  return (path, piece) => {
    const tail = last.path === path ? last.tail : Buffer.alloc(0);
    const seen = Buffer.concat([tail, piece]);
    const held = keys.find(seen);
    if (held) {
      const { name, line, column } = held;
      throw new BadFile([{ file: join(folder, path), line, column, path: '', message: heldKey(name) }]);
    }
    last = { path, tail: seen.subarray(-buildContexts.bytes.overlap) };
  };
}

/** The entries of a context; undefined if the context changed since the suite was read. */
export function unchangedContext({ context }: PlannedBuild): ContextEntry[] | undefined {
  const entries = contextEntries(context);
  return contextHash(context.folder, entries) === context.hash ? entries : undefined;
}
