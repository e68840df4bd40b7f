import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { BadFile } from '../../suite/file-issues.ts';
import type { ContainerSource, ServiceFile, TaskService } from '../task.ts';
import { isBelow } from '../task-folder.ts';
import { type ComposeSource, hostLogs, interpolated, mainImage, type ServiceTable } from './compose-file.ts';

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
  main?: ContainerSource,
): TaskService {
  const { document, remarks } = source;
  const at = (keys: string[], message = '') => document.issue(['services', name, ...keys], message);
  for (const [index] of table.ports?.entries() ?? [])
    remarks.uses('published-port', document.issue(['services', name, 'ports', index], ''));
  const { limits, reservations } = table.deploy?.resources ?? {};
  if (reservations?.devices) remarks.uses('gpu', at(['deploy', 'resources', 'reservations', 'devices']));
  return {
    name,
    source: readSource(source, name, table, base, main),
    place: at([]),
    aliases: aliasesOf(table),
    command: wordsOf(table.command),
    entrypoint: wordsOf(table.entrypoint),
    env: {
      ...readEnvFiles(source, name, table),
      ...variablesOf(source, table.environment, ['services', name, 'environment']),
    },
    hosts: hostsOf(source, name, table),
    workdir: table.working_dir,
    user: table.user,
    healthcheck: healthcheckOf(table),
    dependsOn: [...dependenciesOf(table), ...linksOf(table)],
    files: readServiceFiles(source, name, table),
    cpus: table.cpus ?? limits?.cpus,
    memoryBytes: table.mem_limit ?? limits?.memory,
  };
}

function readSource(
  source: ComposeSource,
  name: string,
  table: ServiceTable,
  base: ContainerSource | undefined,
  main: ContainerSource | undefined,
): ContainerSource {
  const { document, folder, project, remarks } = source;
  const { image, build } = table;
  if (build !== undefined) {
    const { context, dockerfile, target, args } =
      typeof build === 'string'
        ? { context: build, dockerfile: 'Dockerfile', target: undefined, args: {} }
        : build;
    const at = (message: string) => document.issue(['services', name, 'build'], message);
    const path = resolve(project, context);
    const file = resolve(path, dockerfile);
    if (/^(\w+:\/\/|git@)/.test(context) || ![path, file].every((each) => isBelow(folder.path, each))) {
      remarks.uses('outside-path', at(context));
      return { kind: 'unnamed' };
    }
    if (!folder.isFile(file.slice(folder.path.length + 1)))
      throw new BadFile([at(`there is no file ${file}`)]);
    const given = variablesOf(source, args, ['services', name, 'build', 'args']);
    return { kind: 'build', context: path, dockerfile: file, target, args: given };
  }
  if (image === mainImage) {
    const same = main ?? base;
    if (same) return same;
  } else if (image !== undefined && image !== '') return { kind: 'image', image };
  if (base) return base;
  throw new BadFile([document.issue(['services', name], 'has neither an image nor a build')]);
}

function variablesOf(
  { document, remarks, variables }: ComposeSource,
  given: Readonly<Record<string, string | null>>,
  path: readonly string[],
): Record<string, string> {
  const read = (name: string, value: string | null): string => {
    const known = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (value !== null || known !== undefined) return value ?? known ?? '';
    remarks.uses('host-variable', document.issue([...path, name], name));
    return '';
  };
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, read(name, value)]));
}

function wordsOf(command: string | string[] | null | undefined): string[] | undefined {
  return typeof command === 'string' ? splitWords(command) : (command ?? undefined);
}

function aliasesOf({ networks = [], hostname, container_name: container }: ServiceTable): string[] {
  const onNetworks = Array.isArray(networks)
    ? []
    : Object.values(networks).flatMap((one) => one?.aliases ?? []);
  const names = [...onNetworks, hostname, container].filter((name) => typeof name === 'string');
  return [...new Set(names)];
}

/**
 * The addresses by name. Refuses names for this machine, which has no address that a container could reach.
 */
function hostsOf(
  { document, remarks }: ComposeSource,
  name: string,
  { extra_hosts: hosts }: ServiceTable,
): Record<string, string> {
  const isPlain = ([host, address]: [string, string]) =>
    /^[A-Za-z0-9_.-]{1,253}$/.test(host) && isIP(address.replace(/^\[(.*)\]$/, '$1')) !== 0;
  const entries = Object.entries(hosts);
  for (const [host, address] of entries.filter((entry) => !isPlain(entry)))
    remarks.uses('machine-host', document.issue(['services', name, 'extra_hosts'], `${host} at ${address}`));
  return Object.fromEntries(
    entries.filter(isPlain).map(([host, address]) => [host, address.replace(/^\[(.*)\]$/, '$1')]),
  );
}

/** The services that `links` name, without those that `depends_on` names too. */
function linksOf({ links, depends_on: needed }: ServiceTable): TaskService['dependsOn'] {
  const known = Array.isArray(needed) ? needed : Object.keys(needed);
  const names = links.map((link) => link.split(':')[0] ?? '');
  return [...new Set(names)]
    .filter((service) => !known.includes(service))
    .map((service) => ({ service, until: 'started' }));
}

function healthcheckOf({ healthcheck }: ServiceTable): TaskService['healthcheck'] {
  if (healthcheck?.disable) return 'none';
  if (!healthcheck?.test) return undefined;
  const { test, interval, timeout, start_period, retries } = healthcheck;
  const [kind, ...rest] = typeof test === 'string' ? ['CMD-SHELL', test] : test;
  if (kind === 'NONE') return 'none';
  return {
    command: kind === 'CMD-SHELL' ? rest.join(' ') : kind === 'CMD' ? rest : test,
    interval,
    timeout,
    startPeriod: start_period,
    retries,
  };
}

const untilOf = {
  service_started: 'started',
  service_healthy: 'healthy',
  service_completed_successfully: 'ended',
} as const;

function dependenciesOf({ depends_on: given }: ServiceTable): TaskService['dependsOn'] {
  if (Array.isArray(given)) return given.map((service) => ({ service, until: 'started' }));
  return Object.entries(given).map(([service, { condition }]) => ({ service, until: untilOf[condition] }));
}

/** The variables that the `env_file` of a service has. Later files win. */
function readEnvFiles(
  { document, remarks, folder, project, variables }: ComposeSource,
  name: string,
  { env_file: given }: ServiceTable,
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const file of given === undefined ? [] : [given].flat()) {
    const { path, required = true } = typeof file === 'string' ? { path: file } : file;
    const at = (message: string) => document.issue(['services', name, 'env_file'], message);
    const from = resolve(project, path);
    if (!isBelow(folder.path, from)) {
      remarks.uses('outside-path', at(path));
      continue;
    }
    const names = from.slice(folder.path.length + 1).split('/');
    if (!folder.isFile(...names)) {
      if (required) throw new BadFile([at(`there is no file ${from}`)]);
      continue;
    }
    for (const [key, value, isLiteral] of envLines(folder.text(...names))) {
      const onUnset = (variable: string) => remarks.uses('compose-variable', at(`${variable} in ${path}`));
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

/**
 * The words of a command, as Compose splits them: at spaces, with quotes and backslashes as in a shell. No
 * shell runs the command, so no other character has a special meaning.
 */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    const next = text.charAt(at + 1);
    if (character === '\\' && quote !== "'" && (quote === '' || /["\\]/.test(next))) {
      word = `${word ?? ''}${next}`;
      at += 1;
    } else if (quote !== '') {
      if (character === quote) quote = '';
      else word += character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= '';
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = `${word ?? ''}${character}`;
  }
  if (word !== undefined) words.push(word);
  return words;
}

interface Mount {
  type: 'bind' | 'volume' | 'tmpfs';
  source: string | undefined;
  target: string;
}

/** What a service mounts, without the folders for logs, which Offsite makes itself. */
function readServiceFiles(source: ComposeSource, name: string, table: ServiceTable): ServiceFile[] {
  const mounted = table.volumes.flatMap((volume, index): ServiceFile[] => {
    const path = ['services', name, 'volumes', index];
    const file = readMount(source, mountOf(volume), path);
    return file ? [file] : [];
  });
  const inMemory = [table.tmpfs ?? []].flat().map((mount): ServiceFile => {
    // After a colon there are settings of the mount.
    const [to = ''] = mount.split(':');
    return { kind: 'memory', to };
  });
  const shared = table.shm_size === undefined ? [] : [{ kind: 'memory' as const, to: '/dev/shm' }];
  const contents = (['configs', 'secrets'] as const).flatMap((kind) =>
    readContents(source, name, table, kind),
  );
  const files = [...mounted, ...inMemory, ...shared, ...contents];
  const wrong = files.find(({ to }) => !isTarget(to));
  if (!wrong) return files;
  const message = `mounts at ${JSON.stringify(wrong.to)}, which is no absolute path below /`;
  throw new BadFile([source.document.issue(['services', name], message)]);
}

function isTarget(path: string): boolean {
  return /^\/+[^/]/.test(path) && !path.split('/').some((part) => part === '..' || part === '.');
}

function mountOf(volume: ServiceTable['volumes'][number]): Mount {
  if (typeof volume !== 'string') {
    const { type, source, target } = volume;
    return { type, source, target };
  }
  const isLogs = volume.startsWith(`${hostLogs}:`);
  const [, before = '', rest = volume] =
    (isLogs ? /^([^:]+:[^:]+):(.*)$/ : /^([^:]+):(.*)$/).exec(volume) ?? [];
  const [target = ''] = rest.split(':');
  const source = before === '' ? undefined : before;
  const type = isLogs || /^[./~]/.test(before) ? 'bind' : 'volume';
  return { type, source, target };
}

function readMount(
  { document, remarks, folder, project }: ComposeSource,
  { type, source, target }: Mount,
  path: (string | number)[],
): ServiceFile | undefined {
  if (source === hostLogs) return undefined;
  const at = document.issue(path, source === undefined ? target : `${source} at ${target}`);
  if (type === 'tmpfs') return { kind: 'memory', to: target };
  if (type === 'volume') return { kind: 'volume', volume: source ?? '', to: target };
  const from = resolve(project, source ?? '');
  // A mount of the task's whole folder would show its tests and its solution.
  if (source?.startsWith('~') || !isBelow(folder.path, from) || isBelow(from, folder.path)) {
    remarks.uses('bind-mount', at);
    return undefined;
  }
  if (folder.kind(from.slice(folder.path.length + 1)) === undefined)
    throw new BadFile([{ ...at, message: `there is no ${from}` }]);
  remarks.uses('service-file', at);
  return { kind: 'file', from, to: target };
}

function readContents(
  { document, remarks, folder, project, compose }: ComposeSource,
  name: string,
  table: ServiceTable,
  kind: 'configs' | 'secrets',
): ServiceFile[] {
  const what = kind === 'configs' ? 'config' : 'secret';
  return table[kind].flatMap((use, index): ServiceFile[] => {
    const { source, target } = typeof use === 'string' ? { source: use, target: undefined } : use;
    const at = (message: string) => document.issue(['services', name, kind, index], message);
    const given = compose[kind]?.[source];
    if (!given) throw new BadFile([at(`there is no ${what} ${source}`)]);
    const to = targetOf(kind, target ?? source);
    if (given.content !== undefined) return [{ kind: 'content', content: given.content, to }];
    const from = given.file === undefined ? undefined : resolve(project, given.file);
    if (from !== undefined && isBelow(folder.path, from)) {
      if (!folder.isFile(from.slice(folder.path.length + 1)))
        throw new BadFile([at(`there is no file ${from}`)]);
      return [{ kind: 'file', from, to }];
    }
    remarks.uses('outside-path', at(source));
    return [];
  });
}

/** A relative target is in the folder of its kind. */
function targetOf(kind: 'configs' | 'secrets', target: string): string {
  if (target.startsWith('/')) return target;
  return kind === 'configs' ? `/${target}` : `/run/secrets/${target}`;
}
