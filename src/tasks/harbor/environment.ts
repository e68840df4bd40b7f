import { MiB } from '../../bounds/channel.ts';
import type { AgentSource } from '../../suite/agent-source.ts';
import { isSharedFolder } from '../../suite/environment.ts';
import { BadFile, type FileIssue } from '../../suite/file-issues.ts';
import { isHostPattern } from '../../suite/hosts/host-pattern.ts';
import type { GivenEnvironment } from '../../suite/load-environment.ts';
import type { McpServer } from '../../suite/mcp-server.ts';
import type { Path } from '../../suite/yaml-file.ts';
import { hostLogs, mainImage } from '../compose/compose-file.ts';
import { readCompose } from '../compose/read-compose.ts';
import { environmentIn, type FolderReading, type Keys, type TaskEnvironment } from '../task.ts';
import { issueAt } from '../task-folder.ts';
import type { EnvironmentTable, TaskToml } from './task-toml.ts';

/** What the readers of a task's parts work with. Its document is the task's `task.toml`. */
export interface HarborReading extends FolderReading {
  toml: TaskToml;
  /** Patterns of files that are not put into place. */
  ignored: readonly string[];
}

export interface HarborEnvironment {
  environment: GivenEnvironment;
  network: Network;
  /** What it has for the agent. */
  agent: Pick<AgentSource, 'mcpServers' | 'skills'>;
}

interface EnvironmentRequest {
  /** Where the environment is in the case. */
  keys: Keys;
  /** Where the table is in `task.toml`. */
  path: Path;
  /** `environment/`, or `tests/` for a separate verifier. */
  folder: readonly string[];
}

/** The environment that a table and a folder define. Throws `BadFile` if they define none. */
export function readEnvironment(
  reading: HarborReading,
  table: EnvironmentTable,
  request: EnvironmentRequest,
): HarborEnvironment {
  const { document, remarks, toml } = reading;
  const { keys, path } = request;
  const at = (key: string, message = '') => document.issue([...path, key], message);
  if (isSharedFolder(table.workdir ?? '')) remarks.uses('shared-workdir', at('workdir', table.workdir));
  if (table.os === 'windows') remarks.uses('windows', at('os'));
  if (table.gpus > 0) remarks.uses('gpu', at('gpus', `asks for ${table.gpus}`));
  if (table.tpu) remarks.uses('tpu', at('tpu'));
  if (table.healthcheck) remarks.uses('healthcheck', at('healthcheck'));
  const given = readContainers(reading, table, request);
  if (table.healthcheck && given.healthcheck) remarks.uses('two-healthchecks', at('healthcheck'));
  const memory = table.memory_mb === undefined ? table.memory : Math.round(table.memory_mb * MiB);
  // Beside a compose file, they are only values for its variables.
  const env = readVariables(reading, table.env, [...path, 'env']);
  const { resources, startUp } = given;
  const { healthcheck = given.healthcheck } = table;
  const environment = environmentIn(reading, keys, {
    ...given,
    workdir: table.workdir ?? given.workdir,
    env: given.env ?? env,
    resources: {
      cpus: table.cpus ?? resources?.cpus,
      memory: memory ?? resources?.memory,
      disk: table.storage_mb === undefined ? table.storage : Math.round(table.storage_mb * MiB),
    },
    // Unless a compose file says otherwise, Harbor starts every image with this command.
    startUp: {
      entrypoint: startUp?.entrypoint,
      command: startUp?.command ?? ['sh', '-c', 'sleep infinity'],
    },
    ...(healthcheck && { healthcheck }),
    timeouts: { build: table.build_timeout_sec, harness: toml.agent.timeout_sec },
  });
  const network = readNetwork(reading, table, path) ?? olderNetwork(reading, table, path);
  const services = given.services.map(({ name }) => name);
  const mcpServers = readMcpServers(reading, table.mcp_servers, [...path, 'mcp_servers'], services);
  const agent = {
    ...(Object.keys(mcpServers).length > 0 && { mcpServers }),
    ...(table.skills_dir !== undefined && { skills: table.skills_dir }),
  };
  return { environment, network, agent };
}

/** The network according to the deprecated key. Without the key, it is public. */
function olderNetwork({ document, remarks }: HarborReading, table: EnvironmentTable, path: Path): Network {
  const { allow_internet: isOpen } = table;
  const at = document.issue(isOpen === undefined ? path : [...path, 'allow_internet'], '');
  if (isOpen === false) return { hosts: [], at };
  remarks.uses('open-network', at);
  return { hosts: undefined, at };
}

function readContainers(
  reading: HarborReading,
  table: EnvironmentTable,
  { path, folder: names }: EnvironmentRequest,
): TaskEnvironment {
  const { folder, document, remarks } = reading;
  const context = folder.at(...names);
  // Throws if it leads elsewhere.
  folder.kind(...names);
  const dockerfile = folder.at(...names, 'Dockerfile');
  const hasDockerfile = folder.isFile(...names, 'Dockerfile');
  const compose = [...names, 'docker-compose.yaml'];
  const image = table.docker_image;
  const built = hasDockerfile ? { build: { context, dockerfile, args: {} } } : undefined;
  const base = image === undefined ? built : { image };
  if (image !== undefined && hasDockerfile) {
    const at = document.issue([...path, 'docker_image'], `is used in place of ${dockerfile}`);
    remarks.note('not-used', at);
  }
  if (folder.isFile(...compose)) {
    const variables = composeVariables(context, table);
    return readCompose({ reading, file: folder.at(...compose), mainName: 'main', base, variables });
  }
  if (!base) throw new BadFile([issueAt(context, noEnvironment)]);
  const beside = image !== undefined && !hasDockerfile && folder.folder(...names);
  return { ...base, services: [], ...(beside && { folders: { '.': beside } }) };
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
  { document, remarks }: HarborReading,
  servers: EnvironmentTable['mcp_servers'],
  path: Path,
  services: readonly string[],
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

interface NetworkTable {
  network_mode?: 'public' | 'no-network' | 'allowlist' | undefined;
  allowed_hosts?: string[] | undefined;
}

interface Network {
  /** Names, names that begin with `*.`, and addresses. Undefined for a network that is not limited. */
  hosts: string[] | undefined;
  at: FileIssue;
}

/** The hosts of a part of the case; nothing for a network that is not limited. */
export function hostsOf({ places }: HarborReading, { hosts, at }: Network, keys: Keys): { hosts?: string[] } {
  if (!hosts) return {};
  places.set([...keys, 'hosts'].join('.'), at);
  return { hosts };
}

/** The network that a table asks for; undefined if it says nothing. */
export function readNetwork(
  { document, remarks }: HarborReading,
  { network_mode: mode, allowed_hosts: hosts }: NetworkTable,
  path: Path,
): Network | undefined {
  if (mode === undefined && hosts === undefined) return undefined;
  const at = document.issue([...path, mode === undefined ? 'allowed_hosts' : 'network_mode'], '');
  if (mode === 'allowlist' || mode === undefined) {
    remarks.uses('listed-hosts', at);
    for (const [index, host] of (hosts ?? []).entries())
      if (!isHostPattern(host))
        remarks.uses('unknown-host', document.issue([...path, 'allowed_hosts', index], host));
    return { hosts: hosts ?? [], at };
  }
  if (hosts !== undefined && hosts.length > 0) {
    const ignored = `is ignored, because network_mode is ${mode}`;
    remarks.note('not-used', document.issue([...path, 'allowed_hosts'], ignored));
  }
  if (mode === 'no-network') return { hosts: [], at };
  remarks.uses('open-network', at);
  return { hosts: undefined, at };
}

/** A value stands for a variable of the machine if all of it is `${NAME}` or `${NAME:-text}`. */
const fromHost = /^\$\{([A-Za-z_]\w*)(?::-(.*))?\}$/s;

/** Variables of the machine are not passed on: those without a default are obstacles of the task. */
export function readVariables(
  { document, remarks }: HarborReading,
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
