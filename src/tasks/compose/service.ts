import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import type { EnvironmentSource } from '../../suite/environment.ts';
import { BadFile, type FileIssue } from '../../suite/file-issues.ts';
import type { ServiceHealthcheck } from '../../suite/services.ts';
import type { TaskDocument } from '../document.ts';
import type { FolderReading } from '../task.ts';
import { isBelow } from '../task-folder.ts';
import { type ComposeFile, hostLogs, interpolated, mainImage, type ServiceTable } from './compose-file.ts';

/** Where a container starts from: neither, if its build is outside of the task. */
export type ContainerSource = Pick<EnvironmentSource, 'image' | 'build'>;

export interface ComposeRequest {
  reading: FolderReading;
  /** The absolute path of the compose file. */
  file: string;
  /** The service that the agent works in. */
  mainName: string;
  /** What the main service starts from if the file does not say it. */
  base: ContainerSource | undefined;
  /** The values of the variables in the file. */
  variables: Readonly<Record<string, string>>;
}

/** What the readers of services work with. */
export interface ComposeSource extends ComposeRequest {
  /** The compose file. */
  document: TaskDocument;
  /** The folder that relative paths start from. */
  project: string;
  compose: ComposeFile;
  /** The names that the links of all services give to each. */
  linked: ReadonlyMap<string, readonly string[]>;
}

/** A container that a compose file defines. */
export type ComposeService = ReturnType<typeof readService>;

/**
 * A service of a compose file.
 *
 * @param base what it starts from if the file does not say it
 * @param main what the main service starts from, for a service of the same image
 */
export function readService(
  source: ComposeSource,
  name: string,
  table: ServiceTable,
  base: ContainerSource | undefined,
  main = base,
) {
  const { remarks } = source.reading;
  const at: At = (keys, message = '') => source.document.issue(['services', name, ...keys], message);
  for (const [index] of table.ports?.entries() ?? []) remarks.uses('published-port', at(['ports', index]));
  const { limits, reservations } = table.deploy?.resources ?? {};
  if (reservations?.devices) remarks.uses('gpu', at(['deploy', 'resources', 'reservations', 'devices']));
  return {
    name,
    place: at([]),
    source: readSource(source, table, at, base, main),
    aliases: aliasesOf(source, name, table),
    command: table.command ?? undefined,
    entrypoint: table.entrypoint ?? undefined,
    env: { ...readEnvFiles(source, table, at), ...variablesOf(source, table.environment, at, 'environment') },
    hosts: hostsOf(source, table, at),
    workdir: table.working_dir,
    user: table.user,
    healthcheck: healthcheckOf(table),
    dependsOn: dependenciesOf(table),
    mounts: readMounts(source, table, at),
    resources: { cpus: table.cpus ?? limits?.cpus, memory: table.mem_limit ?? limits?.memory },
  };
}

/** An issue with a key of the service. */
type At = (keys: (string | number)[], message?: string) => FileIssue;

function readSource(
  source: ComposeSource,
  { image, build }: ServiceTable,
  at: At,
  base: ContainerSource | undefined,
  main: ContainerSource | undefined,
): ContainerSource {
  if (build) {
    const { reading, project } = source;
    const { context, dockerfile: name, target, args } = build;
    const path = resolve(project, context);
    const isOutside = /^(\w+:\/\/|git@)/.test(context) || !isBelow(reading.folder.path, path);
    if (isOutside) reading.remarks.uses('outside-path', at(['build'], context));
    const dockerfile = isOutside ? undefined : fileIn(source, resolve(path, name), at, ['build'], name);
    if (dockerfile === undefined) return {};
    return {
      build: { context: path, dockerfile, target, args: variablesOf(source, args, at, 'build', 'args') },
    };
  }
  if (image === mainImage && main) return main;
  if (image !== undefined && image !== '' && image !== mainImage) return { image };
  if (base) return base;
  throw new BadFile([at([], 'has neither an image nor a build')]);
}

/**
 * The absolute path of a file of the task. Undefined, with an obstacle, for one outside of it. Throws
 * {@link BadFile} if it is missing.
 *
 * @param written how the compose file names it
 */
function fileIn(
  { reading: { folder, remarks }, project }: ComposeSource,
  path: string,
  at: At,
  keys: (string | number)[],
  written = path,
): string | undefined {
  const from = resolve(project, path);
  if (isBelow(folder.path, from)) {
    if (folder.isFile(from.slice(folder.path.length + 1))) return from;
    throw new BadFile([at(keys, `there is no file ${from}`)]);
  }
  remarks.uses('outside-path', at(keys, written));
  return undefined;
}

function variablesOf(
  { reading: { remarks }, variables }: ComposeSource,
  given: Readonly<Record<string, string | null>>,
  at: At,
  ...keys: string[]
): Record<string, string> {
  const read = (name: string, value: string | null): string => {
    const known = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (value === null && known === undefined) remarks.uses('host-variable', at([...keys, name], name));
    return value ?? known ?? '';
  };
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, read(name, value)]));
}

/** The names that links give to services, by the services' own. */
export function linkedNames(compose: ComposeFile): ComposeSource['linked'] {
  const names = new Map<string, string[]>();
  for (const link of Object.values(compose.services).flatMap(({ links }) => links)) {
    const [service = '', alias = service] = link.split(':');
    if (alias === service) continue;
    const known = names.get(service);
    if (known) known.push(alias);
    else names.set(service, [alias]);
  }
  return names;
}

/** The further names of a service, those that the links of others give it among them. */
function aliasesOf(
  { linked }: ComposeSource,
  name: string,
  { networks, hostname, container_name: container }: ServiceTable,
): string[] {
  const onNetworks = Object.values(networks).flatMap((one) => one?.aliases ?? []);
  const names = [...onNetworks, hostname, container, ...(linked.get(name) ?? [])];
  return [...new Set(names.filter((each) => typeof each === 'string'))];
}

/**
 * The addresses by name. Refuses names for this machine, which has no address that a container could reach.
 */
function hostsOf(
  { reading: { remarks } }: ComposeSource,
  { extra_hosts: hosts }: ServiceTable,
  at: At,
): Record<string, string> {
  const entries = Object.entries(hosts).flatMap(([host, written]) => {
    const address = written.replace(/^\[(.*)\]$/, '$1');
    if (/^[A-Za-z0-9_.-]{1,253}$/.test(host) && isIP(address) !== 0) return [[host, address]];
    remarks.uses('machine-host', at(['extra_hosts'], `${host} at ${written}`));
    return [];
  });
  return Object.fromEntries(entries);
}

/** A text is run by a shell. `false`: not even that of the image. Undefined: that of the image. */
function healthcheckOf({ healthcheck }: ServiceTable): ServiceHealthcheck | false | undefined {
  if (healthcheck?.disable) return false;
  if (!healthcheck?.test) return undefined;
  const { test, interval, timeout, start_period: startPeriod, retries } = healthcheck;
  const [kind, ...rest] = typeof test === 'string' ? ['CMD-SHELL', test] : test;
  if (kind === 'NONE') return false;
  const command = kind === 'CMD-SHELL' ? rest.join(' ') : kind === 'CMD' ? rest : test;
  return { command, interval, timeout, startPeriod, retries: Math.max(1, retries) };
}

/** Those that `links` names only have to be started. */
function dependenciesOf({ links, depends_on: needed }: ServiceTable) {
  const linked = links.map((link) => [link.split(':')[0] ?? '', 'started'] as const);
  return { ...needed, ...Object.fromEntries(linked), ...needed };
}

/** The variables that the `env_file` of a service has. Later files win. */
function readEnvFiles(
  source: ComposeSource,
  { env_file: files }: ServiceTable,
  at: At,
): Record<string, string> {
  const { project, reading, variables } = source;
  const { folder, remarks } = reading;
  const found: Record<string, string> = {};
  for (const { path, required } of files) {
    const names = resolve(project, path).slice(folder.path.length + 1);
    const isOptional = !required && isBelow(folder.path, resolve(project, path));
    if (isOptional && !folder.isFile(names)) continue;
    if (fileIn(source, path, at, ['env_file']) === undefined) continue;
    for (const [key, value, isLiteral] of envLines(folder.text(names))) {
      const onUnset = (variable: string) =>
        remarks.uses('compose-variable', at(['env_file'], `${variable} in ${path}`));
      const known = { ...variables, ...found };
      found[key] = isLiteral ? value : String(interpolated(value, { variables: known, onUnset }));
    }
  }
  return found;
}

type EnvLine = [key: string, value: string, isLiteral: boolean];

/** Lines `KEY=value`. A value in single quotes is taken as it is; after others, ` #` begins a comment. */
function envLines(text: string): EnvLine[] {
  return text.split('\n').flatMap((line): EnvLine[] => {
    const [, key, rest = ''] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (key === undefined) return [];
    const [, single] = /^'([^']*)'/.exec(rest) ?? [];
    if (single !== undefined) return [[key, single, true]];
    const [, double] = /^"((?:[^"\\]|\\.)*)"/.exec(rest) ?? [];
    const value = double?.replaceAll(/\\(.)/g, (_, each) => (each === 'n' ? '\n' : each));
    return [[key, value ?? rest.replace(/(^|\s+)#.*$/, ''), false]];
  });
}

/** What a container mounts, by the paths there. */
interface Mounts {
  /** Files and folders of the task, by their absolute paths on the host. */
  files: Record<string, string>;
  folders: Record<string, string>;
  texts: Record<string, string>;
  /** Folders in memory. */
  memory: string[];
  /** Volumes of the engine, by the name that services share them under; empty for none. */
  volumes: { name: string; to: string }[];
}

/** What a service mounts, without the folders for logs, which Offsite makes itself. */
function readMounts(source: ComposeSource, table: ServiceTable, at: At): Mounts {
  const mounts: Mounts = { files: {}, folders: {}, texts: {}, memory: [], volumes: [] };
  const { files, folders, texts, memory, volumes } = mounts;
  const put = (from: string, to: string) => {
    (statSync(from).isDirectory() ? folders : files)[to] = from;
  };
  for (const [index, { type, source: given = '', target: to }] of table.volumes.entries()) {
    if (given === hostLogs) continue;
    if (type === 'tmpfs') memory.push(to);
    else if (type === 'volume') volumes.push({ name: given, to });
    else {
      const mount = given === '' ? to : `${given} at ${to}`;
      const from = mountedPath(source, given, at(['volumes', index], mount));
      if (from !== undefined) put(from, to);
    }
  }
  // After a colon there are settings of the mount.
  for (const mount of table.tmpfs) memory.push(mount.split(':')[0] ?? '');
  if (table.shm_size !== undefined) memory.push('/dev/shm');
  for (const kind of ['configs', 'secrets'] as const)
    for (const [index, { source: name, target = name }] of table[kind].entries()) {
      const given = source.compose[kind]?.[name];
      if (!given) throw new BadFile([at([kind, index], `there is no ${kind.slice(0, -1)} ${name}`)]);
      // A relative target is in the folder of its kind.
      const to = target.startsWith('/') ? target : `${kind === 'configs' ? '' : '/run/secrets'}/${target}`;
      if (given.content !== undefined) texts[to] = given.content;
      else if (given.file === undefined) source.reading.remarks.uses('outside-path', at([kind, index], name));
      else {
        const from = fileIn(source, given.file, at, [kind, index]);
        if (from !== undefined) put(from, to);
      }
    }
  const targets = [
    ...[files, folders, texts].flatMap(Object.keys),
    ...memory,
    ...volumes.map(({ to }) => to),
  ];
  const wrong = targets.find((path) => !isTarget(path));
  if (wrong === undefined) return mounts;
  throw new BadFile([at([], `mounts at ${JSON.stringify(wrong)}, which is no absolute path below /`)]);
}

function isTarget(path: string): boolean {
  return /^\/+[^/]/.test(path) && !path.split('/').some((part) => part === '..' || part === '.');
}

/** The absolute path of a file or folder of the task that is mounted. */
function mountedPath(
  { reading: { folder, remarks }, project }: ComposeSource,
  given: string,
  at: FileIssue,
): string | undefined {
  const from = resolve(project, given);
  // A mount of the task's whole folder would show its tests and its solution.
  if (given.startsWith('~') || !isBelow(folder.path, from) || isBelow(from, folder.path)) {
    remarks.uses('bind-mount', at);
    return undefined;
  }
  if (folder.kind(from.slice(folder.path.length + 1)) === undefined)
    throw new BadFile([{ ...at, message: `there is no ${from}` }]);
  remarks.uses('service-file', at);
  return from;
}
