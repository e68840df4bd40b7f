import { MiB } from '../../bounds/channel.ts';
import { isSharedFolder } from '../../suite/environment.ts';
import { BadFile, type FileIssue } from '../../suite/file-issues.ts';
import { isHostPattern } from '../../suite/hosts/host-pattern.ts';
import type { McpServer } from '../../suite/mcp-server.ts';
import type { Healthcheck } from '../../suite/services.ts';
import type { Path } from '../../suite/yaml-file.ts';
import { hostLogs, mainImage } from '../compose/compose-file.ts';
import { healthcheckOfMain, readCompose } from '../compose/read-compose.ts';
import type { TaskDocument } from '../document.ts';
import type { Remarks } from '../supported.ts';
import type { ContainerSource, TaskEnvironment, TaskNetwork, TaskService } from '../task.ts';
import { issueAt, type TaskFolder } from '../task-folder.ts';
import type { EnvironmentTable, HealthcheckTable } from './task-toml.ts';

/**
 * The environment that a table and a folder define: `environment/`, or `tests/` for a separate verifier.
 * Throws `BadFile` if they define none.
 *
 * @param path where the table is in `task.toml`
 */
export function readEnvironment(
  source: HarborSource,
  table: EnvironmentTable,
  { path, folder }: { path: Path; folder: readonly string[] },
): TaskEnvironment {
  const { document, remarks } = source;
  const at = (key: string, message = '') => document.issue([...path, key], message);
  if (isSharedFolder(table.workdir ?? '')) remarks.uses('shared-workdir', at('workdir', table.workdir));
  if (table.os === 'windows') remarks.uses('windows', at('os'));
  if (table.gpus > 0) remarks.uses('gpu', at('gpus', `asks for ${table.gpus}`));
  if (table.tpu) remarks.uses('tpu', at('tpu'));
  if (table.healthcheck) remarks.uses('healthcheck', at('healthcheck'));
  const containers = readContainers(source, table, { path, folder });
  const { main } = containers;
  const ofTable = table.healthcheck && healthcheckOf(table.healthcheck);
  const ofMain = main && healthcheckOfMain(main);
  if (ofTable && ofMain) remarks.uses('two-healthchecks', at('healthcheck'));
  const memory = table.memory_mb === undefined ? table.memory : Math.round(table.memory_mb * MiB);
  // Beside a compose file, they are only values for its variables.
  const env = readVariables(source, table.env, [...path, 'env']);
  return {
    ...containers,
    workdir: table.workdir ?? main?.workdir,
    user: main?.user,
    env: main?.env ?? env,
    cpus: table.cpus ?? main?.cpus,
    memoryBytes: memory ?? main?.memoryBytes,
    diskBytes: table.storage_mb === undefined ? table.storage : Math.round(table.storage_mb * MiB),
    network: readNetwork(source, table, path) ?? olderNetwork(source, table, path),
    healthcheck: ofTable ?? ofMain,
    // Unless a compose file says otherwise, Harbor starts every image with this command.
    startUp: { entrypoint: main?.entrypoint, command: main?.command ?? ['sh', '-c', 'sleep infinity'] },
    mcpServers: readMcpServers(source, table.mcp_servers, {
      path: [...path, 'mcp_servers'],
      services: containers.services.map(({ name }) => name),
    }),
    skillsFolder: table.skills_dir,
    buildTimeoutMs: table.build_timeout_sec,
  };
}

/** The network according to the deprecated key. Without the key, it is public. */
function olderNetwork({ document, remarks }: HarborSource, table: EnvironmentTable, path: Path): TaskNetwork {
  const { allow_internet: isOpen } = table;
  const at = document.issue(isOpen === undefined ? path : [...path, 'allow_internet'], '');
  if (isOpen === false) return { mode: 'none', at };
  remarks.uses('open-network', at);
  return { mode: 'public' };
}

export function healthcheckOf(table: HealthcheckTable): Healthcheck {
  return {
    command: table.command,
    interval: table.interval_sec,
    timeout: table.timeout_sec,
    startPeriod: table.start_period_sec,
    retries: Math.max(1, table.retries),
  };
}

interface Containers {
  source: ContainerSource;
  services: TaskService[];
  main?: TaskService;
  files?: string | undefined;
}

function readContainers(
  harbor: HarborSource,
  table: EnvironmentTable,
  { path, folder: names }: { path: Path; folder: readonly string[] },
): Containers {
  const { folder, document, remarks } = harbor;
  const context = folder.at(...names);
  // Throws if it leads elsewhere.
  folder.kind(...names);
  const hasDockerfile = folder.isFile(...names, 'Dockerfile');
  const compose = [...names, 'docker-compose.yaml'];
  const image = table.docker_image;
  const imageAt = document.issue([...path, 'docker_image'], '');
  const built: ContainerSource = {
    kind: 'build',
    context,
    dockerfile: folder.at(...names, 'Dockerfile'),
    target: undefined,
    args: {},
  };
  const base = image === undefined ? (hasDockerfile ? built : undefined) : { kind: 'image' as const, image };
  if (image !== undefined && hasDockerfile)
    remarks.note('not-used', {
      ...imageAt,
      message: `is used in place of ${folder.at(...names, 'Dockerfile')}`,
    });
  if (folder.isFile(...compose)) {
    const { main, services } = readCompose({
      folder,
      remarks,
      file: folder.at(...compose),
      mainName: 'main',
      base,
      variables: composeVariables(context, table),
    });
    return { source: main.source, services, main };
  }
  if (!base) throw new BadFile([issueAt(context, noEnvironment)]);
  const files = image !== undefined && !hasDockerfile ? folder.folder(...names) : undefined;
  return { source: base, services: [], files };
}

const noEnvironment =
  'has neither a Dockerfile nor a docker-compose.yaml, and task.toml names no docker_image';

/** The values that variables in a task's compose file have. */
function composeVariables(context: string, table: EnvironmentTable): Record<string, string> {
  const memory = table.memory_mb ?? (table.memory === undefined ? undefined : table.memory / 1024 ** 2);
  const literal = Object.entries(table.env).filter(([, value]) => !value.startsWith('${'));
  return {
    ...Object.fromEntries(literal),
    CONTEXT_DIR: context,
    MAIN_IMAGE_NAME: mainImage,
    ...(table.docker_image !== undefined && { PREBUILT_IMAGE_NAME: table.docker_image }),
    TEST_DIR: '/tests',
    ...(table.cpus !== undefined && { CPUS: String(table.cpus) }),
    ...(memory !== undefined && { MEMORY: `${memory}M` }),
    HOST_AGENT_LOGS_PATH: hostLogs,
    HOST_VERIFIER_LOGS_PATH: hostLogs,
    HOST_ARTIFACTS_PATH: hostLogs,
    ENV_AGENT_LOGS_PATH: '/logs/agent',
    ENV_VERIFIER_LOGS_PATH: '/logs/verifier',
    ENV_ARTIFACTS_PATH: '/logs/artifacts',
  };
}

/** Where a server runs that the main container can reach without a service. */
const ownHosts = ['localhost', '127.0.0.1', '[::1]', 'main'];

/** @param services the names of the containers beside the main one */
function readMcpServers(
  { document, remarks }: HarborSource,
  servers: EnvironmentTable['mcp_servers'],
  { path, services }: { path: Path; services: readonly string[] },
): Record<string, McpServer> {
  const entries = servers.map(({ transport, url = '', command = '', args, ...server }, index) => {
    const at = (key: string, message: string) => document.issue([...path, index, key], message);
    if (!/^[\w-]+$/.test(server.name)) remarks.uses('mcp-name', at('name', server.name));
    for (const [name, value] of Object.entries(server.headers))
      if (/\$\{/.test(value)) remarks.uses('host-variable', at('headers', name));
    if (transport === 'stdio') return [server.name, { command, args, env: {} }] as const;
    const host = URL.parse(url)?.hostname;
    if (host === undefined || ![...ownHosts, ...services].includes(host))
      remarks.uses('mcp-elsewhere', at('url', url));
    const headers = Object.keys(server.headers).length > 0 && { headers: server.headers };
    return [server.name, { url, transport: transport === 'sse' ? 'sse' : 'http', ...headers }] as const;
  });
  return Object.fromEntries(entries);
}

/** What a reader of a task's parts works with. */
export interface HarborSource {
  folder: TaskFolder;
  /** The task's `task.toml`. */
  document: TaskDocument;
  remarks: Remarks;
}

interface NetworkTable {
  network_mode?: 'public' | 'no-network' | 'allowlist' | undefined;
  allowed_hosts?: string[] | undefined;
}

/** The network that a table asks for; undefined if it says nothing. */
export function readNetwork(
  { document, remarks }: HarborSource,
  { network_mode: mode, allowed_hosts: hosts }: NetworkTable,
  path: Path,
): TaskNetwork | undefined {
  const at = (key: string, message = ''): FileIssue => document.issue([...path, key], message);
  if (mode === undefined && hosts === undefined) return undefined;
  if (mode === 'allowlist' || (mode === undefined && hosts !== undefined)) {
    const place = at(mode === undefined ? 'allowed_hosts' : 'network_mode');
    remarks.uses('listed-hosts', place);
    for (const [index, host] of (hosts ?? []).entries())
      if (!isHostPattern(host))
        remarks.uses('unknown-host', document.issue([...path, 'allowed_hosts', index], host));
    return { mode: 'allowlist', hosts: hosts ?? [], at: place };
  }
  if (hosts !== undefined && hosts.length > 0)
    remarks.note('not-used', at('allowed_hosts', `is ignored, because network_mode is ${mode}`));
  if (mode === 'no-network') return { mode: 'none', at: at('network_mode') };
  remarks.uses('open-network', at('network_mode'));
  return { mode: 'public' };
}

/** A value stands for a variable of the machine if all of it is `${NAME}` or `${NAME:-text}`. */
const fromHost = /^\$\{([A-Za-z_]\w*)(?::-(.*))?\}$/s;

/** Variables of the machine are not passed on: those without a default are obstacles of the task. */
export function readVariables(
  { document, remarks }: HarborSource,
  variables: Readonly<Record<string, string>>,
  path: Path,
): Record<string, string> {
  const read = (key: string, value: string): string => {
    const [, name, otherwise] = fromHost.exec(value) ?? [];
    if (name === undefined) return value;
    const feature = otherwise === undefined ? 'host-variable' : 'host-variable-default';
    remarks.uses(feature, document.issue([...path, key], value));
    return otherwise ?? '';
  };
  return Object.fromEntries(Object.entries(variables).map(([key, value]) => [key, read(key, value)]));
}
