import { dirname } from 'node:path';
import { z } from 'zod';
import { taskSets } from '../../bounds/tasks.ts';
import { isIdle, isSharedFolder } from '../../suite/environment.ts';
import { BadFile } from '../../suite/file-issues.ts';
import { schemaProblems } from '../../suite/schema-problems.ts';
import { serviceProblems } from '../../suite/services.ts';
import { type Path, readYamlFile } from '../../suite/yaml-file.ts';
import { unknownKeys } from '../document.ts';
import { type GivenService, type TaskEnvironment, textIn } from '../task.ts';
import { ComposeFile, interpolated, type ServiceTable } from './compose-file.ts';
import {
  type ComposeRequest,
  type ComposeService,
  type ComposeSource,
  linkedNames,
  readService,
} from './service.ts';

/** Reads a compose file as an environment of a case. Throws {@link BadFile} with its problems. */
export function readCompose(request: ComposeRequest): TaskEnvironment {
  const { reading, file, mainName, base } = request;
  const { folder, remarks } = reading;
  const document = readYamlFile(file, z.unknown(), { reach: folder.reach, merge: true });
  const value = interpolated(document.value, {
    variables: request.variables,
    onUnset: (name, path) => remarks.uses('compose-variable', document.issue(path, name)),
  });
  const result = ComposeFile.safeParse(value, { reportInput: true });
  if (!result.success) {
    const problems = schemaProblems(result.error).slice(0, taskSets.count.listed);
    throw new BadFile(problems.map(({ path, message }) => document.issue(path, message)));
  }
  for (const { path } of unknownKeys(ComposeFile, value)) {
    const key = String(path.at(-1));
    if (key.startsWith('x-')) continue;
    const isOfService = path.length === 3 && path[0] === 'services';
    const rule = isOfService ? keyRule(key, at(value, path)) : { obstacle: '' };
    if (rule === 'same') continue;
    if ('note' in rule) remarks.note('not-used', document.issue(path, rule.note));
    else remarks.uses('compose-key', document.issue(path, [key, rule.obstacle].filter(Boolean).join(': ')));
  }
  const compose = result.data;
  const linked = linkedNames(compose);
  const source: ComposeSource = { ...request, document, project: dirname(file), compose, linked };
  const { [mainName]: mainTable, ...others } = compose.services;
  if (!mainTable && !base)
    throw new BadFile([document.issue(['services'], `has no service ${mainName}, in which the agent works`)]);
  const whole = mainTable ?? ComposeFile.shape.services.valueType.parse({});
  const main = readService(source, mainName, whole, base);
  recordSettings(source, main, mainTable);
  const active = Object.entries(others).filter(([name, { profiles }]) => {
    if (profiles.length > 0)
      remarks.uses('inactive-service', document.issue(['services', name, 'profiles'], name));
    return profiles.length === 0;
  });
  // Before they are read, which takes long for thousands.
  const [many] = serviceProblems(active.map(([name]) => ({ name, aliases: [], dependsOn: [] })));
  if (many) throw new BadFile([document.issue(['services'], many.message)]);
  const services = active.map(([name, table]) => readService(source, name, table, undefined, main.source));
  requireKnown(source, [main, ...services]);
  recordVolumes(source, [main, ...services]);
  recordNetworks(source);
  return environmentOf(
    main,
    services.map((service) => serviceOf(service, source)),
  );
}

function environmentOf(main: ComposeService, services: GivenService[]): TaskEnvironment {
  const { mounts, workdir, user, env, resources, hosts, command, entrypoint } = main;
  const { files, folders, texts, memory, volumes } = mounts;
  const placed = [
    ...memory.map((path) => ({ path, folder: true as const, mode: 0o1777 })),
    ...Object.entries(texts).map(([path, text]) => ({ path, content: Buffer.from(text), mode: 0o644 })),
  ];
  return {
    ...main.source,
    services,
    ...(services.length > 0 && { nameForServices: main.name }),
    workdir,
    user,
    env,
    resources,
    startUp: { entrypoint, command },
    ...(Object.keys(hosts).length > 0 && { hosts }),
    ...(main.healthcheck && { healthcheck: ofBash(main.healthcheck) }),
    files,
    folders,
    ...(placed.length > 0 && { placed }),
    ...(volumes.length > 0 && { volumes: volumes.map(({ to }) => to) }),
  };
}

/** The healthcheck of the main container, whose command bash runs. */
function ofBash({ command, ...times }: Exclude<ComposeService['healthcheck'], false | undefined>) {
  const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;
  return { ...times, command: typeof command === 'string' ? command : command.map(quoted).join(' ') };
}

function serviceOf(
  { name, place, source, mounts, healthcheck, hosts, ...service }: ComposeService,
  { reading }: ComposeSource,
): GivenService {
  const texts = Object.entries(mounts.texts).map(([to, text]) => {
    return [to, textIn(reading, ['services', name, to], text)] as const;
  });
  const duration = (ms: number) => `${Math.max(1, Math.round(ms))}ms`;
  return {
    name,
    place,
    source: {
      ...source,
      ...service,
      ...(Object.keys(hosts).length > 0 && { hosts }),
      healthcheck: healthcheck && {
        ...healthcheck,
        interval: duration(healthcheck.interval),
        timeout: duration(healthcheck.timeout),
        startPeriod: duration(healthcheck.startPeriod),
      },
      files: { ...mounts.files, ...Object.fromEntries(texts) },
      folders: mounts.folders,
      memoryFolders: mounts.memory,
    },
    volumes: mounts.volumes.map(({ to }) => to),
  };
}

/** Records what the main container asks for, including what is not a setting of an environment. */
function recordSettings(
  { document, reading: { remarks }, mainName }: ComposeSource,
  main: ComposeService,
  table: ServiceTable | undefined,
): void {
  if (!table) return;
  const at = (key: keyof ServiceTable, message = '') => document.issue(['services', mainName, key], message);
  if (isSharedFolder(main.workdir ?? '')) remarks.uses('shared-workdir', at('working_dir', main.workdir));
  if (main.command && !isIdle(main.command)) remarks.uses('image-entrypoint', at('command'));
  if (main.entrypoint && !isIdle(main.entrypoint)) remarks.uses('image-entrypoint', at('entrypoint'));
  if (main.healthcheck) remarks.uses('healthcheck', at('healthcheck'));
  for (const folder of main.mounts.memory) remarks.uses('main-memory-folder', at('tmpfs', folder));
}

/**
 * Records volumes that several containers share. A volume of only one service becomes a folder of its
 * container.
 */
function recordVolumes(
  { document, reading: { remarks }, mainName, compose }: ComposeSource,
  services: readonly ComposeService[],
): void {
  const users = new Map<string, string[]>();
  for (const { name, mounts } of services)
    for (const { name: volume } of mounts.volumes)
      if (volume !== '') users.set(volume, [...(users.get(volume) ?? []), name]);
  for (const [volume, names] of users) {
    const [first = ''] = names.filter((name) => name !== mainName);
    const isShared = new Set(names).size > 1;
    const at = document.issue(['services', isShared ? first : (names[0] ?? ''), 'volumes'], volume);
    if (isShared) remarks.uses('volume', at);
    const settings = Object.entries(compose.volumes?.[volume] ?? {});
    for (const [key, value] of settings)
      if (!isPlainVolume(key, value))
        remarks.uses('compose-key', document.issue(['volumes', volume, key], key));
  }
}

/** Whether a setting of a volume leaves it an empty folder. Options of its driver can mount any folder. */
function isPlainVolume(key: string, value: unknown): boolean {
  if (key === 'driver') return value === 'local';
  return ['name', 'labels'].includes(key) || key.startsWith('x-') || value === null || value === false;
}

/** Records networks that do not connect all services, because in Offsite all services reach each other. */
function recordNetworks({ document, reading: { remarks }, compose }: ComposeSource): void {
  const [first, ...others] = Object.entries(compose.services).map(([name, { networks }]) => ({
    name,
    on: Object.keys(networks).toSorted().join(),
  }));
  const other = others.find(({ on }) => on !== first?.on);
  if (other) remarks.uses('separate-networks', document.issue(['services', other.name], ''));
  for (const [name, network] of Object.entries(compose.networks ?? {}))
    if ((network as { external?: unknown } | null)?.external === true)
      remarks.uses('separate-networks', document.issue(['networks', name], ''));
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], value);
}

function requireKnown({ document }: ComposeSource, services: readonly ComposeService[]): void {
  const names = services.map(({ name }) => name);
  const unknown = services.flatMap(({ name, dependsOn }) =>
    Object.keys(dependsOn)
      .filter((service) => !names.includes(service))
      .map((service) =>
        document.issue(['services', name, 'depends_on'], `names ${service}, which is no service of the file`),
      ),
  );
  if (unknown.length > 0) throw new BadFile(unknown);
}

/**
 * What Offsite does with a key of a service that it does not read. `same`: it changes nothing here. `note`:
 * what Offsite does differently. `obstacle`: why Offsite cannot run the task.
 */
type KeyRule = 'same' | { note: string } | { obstacle: string };

const seal = 'it would open the sandbox to the machine';

/** By the keys of the service. Others are obstacles. */
const rules: readonly [keys: string, rule: KeyRule | ((value: unknown) => KeyRule)][] = [
  // They change how the container is named, shown or ended, and not what runs in it.
  ['annotations attach develop expose init labels logging pull_policy stdin_open', 'same'],
  ['stop_grace_period stop_signal tty', 'same'],
  ['scale', (value) => (value === 1 ? 'same' : { obstacle: 'a service is one container here' })],
  ['restart domainname', { note: 'is ignored' }],
  [
    'ulimits pids_limit mem_reservation mem_swappiness memswap_limit cpu_shares cpu_period cpu_quota cpu_count ' +
      'cpu_percent cpuset blkio_config oom_kill_disable oom_score_adj',
    { note: 'the limits of the sandbox apply in its place' },
  ],
  ['platform', { note: 'the image that the engine has is used' }],
  ['read_only', unlessFalse({ note: 'its files can be written here' })],
  ['dns dns_search dns_opt', { note: 'no name server is reached here' }],
  ['cap_drop', { note: 'root has five capabilities here: CHOWN, DAC_OVERRIDE, FOWNER, SETGID and SETUID' }],
  // These would give a container more access than a sandbox has.
  ['cap_add', (value) => (isList(value, hasCapability) ? 'same' : { obstacle: seal })],
  ['privileged', unlessFalse({ obstacle: seal })],
  ['devices device_cgroup_rules', (value) => (isList(value, () => false) ? 'same' : { obstacle: seal })],
  ['pid uts userns_mode cgroup_parent sysctls', { obstacle: seal }],
  ['ipc', (value) => (value === 'private' || value === 'shareable' ? 'same' : { obstacle: seal })],
  ['cgroup', (value) => (value === 'private' ? 'same' : { obstacle: seal })],
  [
    'network_mode',
    (value) => (value === 'bridge' ? 'same' : { obstacle: 'a trial has a network of its own' }),
  ],
  ['runtime', { obstacle: 'the runtime is that of the sandbox in offsite.yaml' }],
  [
    'security_opt',
    (value) =>
      isList(value, isNoNewPrivileges)
        ? 'same'
        : { obstacle: 'the filters of Offsite cannot be removed from a container' },
  ],
  ['volumes_from', { obstacle: 'containers share no files here' }],
];

function keyRule(key: string, value: unknown): KeyRule {
  const [, rule = { obstacle: '' }] = rules.find(([keys]) => keys.split(' ').includes(key)) ?? [];
  return typeof rule === 'function' ? rule(value) : rule;
}

function unlessFalse(rule: KeyRule): (value: unknown) => KeyRule {
  return (value) => (value === false ? 'same' : rule);
}

/** Whether it is a list of such texts, or an empty one. */
function isList(value: unknown, is: (text: string) => boolean): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && is(each));
}

/** The capabilities that root has in a sandbox anyway. */
function hasCapability(name: string): boolean {
  return /^(CAP_)?(CHOWN|DAC_OVERRIDE|FOWNER|SETGID|SETUID)$/i.test(name);
}

/** Offsite sets it for all containers. */
function isNoNewPrivileges(option: string): boolean {
  return /^no-new-privileges([:=]true)?$/.test(option);
}
