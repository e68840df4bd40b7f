import { existsSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import { buildContexts } from '../bounds/suite.ts';
import type { KnownKeys } from '../redaction/redactor.ts';
import { type ContextEntry, contextEntries, contextHash, neverInContexts } from './build-context.ts';
import { dockerfileProblems } from './dockerfile.ts';
import {
  type CaseEnvironment,
  type EnvironmentSource,
  noEnvironment,
  type PlacedFile,
  type PlannedBuild,
} from './environment.ts';
import { BadFile, issueIn } from './file-issues.ts';
import { type FileReader, heldKey, type ReadFile, reachedFolder } from './read-file.ts';
import { dependenciesOf, type PlannedService, type ServiceSource } from './services.ts';
import type { SuitePart } from './suite-part.ts';

/** An environment with what only a task can say. */
export type GivenEnvironment = EnvironmentSource & {
  placed?: PlacedFile[] | undefined;
  volumes?: string[] | undefined;
};

/** The environment of a part of the suite, or the suite's own if the part has none. Each is read once. */
export function environmentOf(own: EnvironmentSource | undefined, part: SuitePart): CaseEnvironment {
  const source = own ?? part.source.environment;
  if (!source) return noEnvironment;
  const known = part.environments.get(source);
  if (known) return known;
  const environment = plannedEnvironment(source, (own ? part : part.whole).at('environment'));
  part.environments.set(source, environment);
  return environment;
}

/** Reads the files that an environment names, and reports their problems. */
function plannedEnvironment(
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
  part: SuitePart,
): CaseEnvironment {
  return {
    ...sourceOf({ image, build }, part),
    ...(services && {
      services: Object.entries(services).map(([name, service]) =>
        plannedService(name, service, part.at('services', name)),
      ),
    }),
    ...(nameForServices !== undefined && { nameForServices }),
    workdir,
    user,
    env,
    resources,
    ...(startUp && { startUp }),
    ...(hosts && { hosts }),
    ...(healthcheck && { healthcheck }),
    ...((placed.files || placed.folders || placed.writable) && { files: placedFiles(placed, part) }),
    ...(volumes && { volumes }),
    ...(timeouts && { timeouts }),
    ...(needs && { needs }),
  };
}

function sourceOf({ image, build }: Pick<EnvironmentSource, 'image' | 'build'>, part: SuitePart) {
  const { images } = part.reading;
  return {
    ...(image !== undefined && {
      image: { name: image, mappedTo: images[image], place: part.at('image').placeText },
    }),
    ...(build && { build: plannedBuild(build, part.at('build')) }),
  };
}

/** Reads the files that a service of an environment names. */
function plannedService(
  name: string,
  { image, build, healthcheck, dependsOn, files, folders, ...service }: ServiceSource,
  part: SuitePart,
): PlannedService {
  return {
    name,
    ...service,
    ...sourceOf({ image, build }, part),
    ...(healthcheck !== undefined && { healthcheck: healthcheck === false ? 'none' : healthcheck }),
    dependsOn: dependenciesOf(dependsOn),
    ...((files || folders) && { files: placedFiles({ files, folders }, part) }),
    place: part.placeText,
  };
}

/** The files and folders that an environment puts into the sandbox. Links are kept and never followed. */
function placedFiles(
  { files = {}, folders = {}, placed = [], writable = [] }: Partial<GivenEnvironment>,
  part: SuitePart,
): PlacedFile[] {
  const { files: reader, reach } = part.reading;
  const folderFrom = (path: string, source: string): PlacedFile[] => {
    const root = reachedFolder(source, reach);
    const entries = contextEntries({ folder: root, ignore: '' }, reach.except);
    return [
      ...(posix.resolve('/', path) === '/' ? [] : [{ path, folder: true as const, mode: 0o755 }]),
      ...entries.map(({ path: below, type, mode, linkTarget = '' }): PlacedFile => {
        const target = posix.join(path, below);
        if (type === 'symlink') return { path: target, linkTarget };
        if (type === 'folder') return { path: target, folder: true, mode };
        return { path: target, content: reader.file(join(root, below)).content, mode };
      }),
    ];
  };
  return [
    ...Object.entries(folders).flatMap(
      ([path, source]) =>
        part.at('folders').attempt(() => folderFrom(path, part.resolve(source)), source) ?? [],
    ),
    ...Object.entries(files).flatMap(
      ([path, source]) =>
        part.at('files').attempt(() => fileAt(path, reader.file(part.resolve(source))), source) ?? [],
    ),
    ...placed,
    ...writable.map((path) => ({ path, folder: true as const, mode: 0o777 })),
  ];
}

/** A file that was read, at its path in a sandbox. */
export function fileAt(path: string, { content, isExecutable }: ReadFile) {
  return { path, content, mode: isExecutable ? 0o755 : 0o644 };
}

function plannedBuild(
  { context, dockerfile: path, target, args }: NonNullable<EnvironmentSource['build']>,
  part: SuitePart,
): PlannedBuild | undefined {
  const { folder, files, reach, images, keys } = part.reading;
  return part.attempt(() => {
    const contextFolder = reachedFolder(part.resolve(context), reach);
    const file = part.resolve(context, path);
    const dockerfile = files.text(file);
    for (const { line, message } of dockerfileProblems(dockerfile, target))
      part.issues.push(issueIn(file, message, { line }));
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
      place: part.placeText,
    };
  });
}

/** The patterns of the Dockerfile's own ignore file, or of the context's. */
function ignoreFile(dockerfile: string, context: string, files: FileReader): string {
  for (const file of [`${dockerfile}.dockerignore`, join(context, '.dockerignore')]) {
    if (existsSync(file)) return files.text(file);
  }
  return '';
}

function keyFinder(keys: KnownKeys, folder: string): Parameters<typeof contextHash>[2] {
  let last: { path: string; tail: Buffer } = { path: '', tail: Buffer.alloc(0) };
  return (path, piece) => {
    const tail = last.path === path ? last.tail : Buffer.alloc(0);
    const seen = Buffer.concat([tail, piece]);
    const held = keys.find(seen);
    if (held) throw new BadFile([issueIn(join(folder, path), heldKey(held.name), held)]);
    last = { path, tail: seen.subarray(-buildContexts.bytes.overlap) };
  };
}

/** The entries of a context; undefined if the context changed since the suite was read. */
export function unchangedContext({ context }: PlannedBuild): ContextEntry[] | undefined {
  const entries = contextEntries(context);
  return contextHash(context.folder, entries) === context.hash ? entries : undefined;
}
