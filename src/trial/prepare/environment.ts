import { inputError, type OffsiteError } from '../../base/offsite-error.ts';
import { printPath } from '../../contract/errors.ts';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';
import type { Image } from '../../engine/port/images.ts';
import { KnownKeys } from '../../redaction/redactor.ts';
import type { Sandbox } from '../../suite/plan.ts';
import {
  fitsEnvironment,
  isReservedName,
  type Variables,
  variablesAsEnvironment,
} from '../../suite/variables.ts';
import type { TrialSpec } from '../spec.ts';
import { type CredentialConfig, credentialNames } from './credentials.ts';

/**
 * Variables that every script in a sandbox gets, whatever variables its case has: those of the image, or
 * these. {@link passedEnvironment} decides which of the host’s variables are added.
 */
const base = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
};

export function baseEnvironment({ env }: Pick<Image, 'env'>): Record<string, string> {
  return { PATH: env.PATH ?? base.PATH, LANG: env.LANG ?? base.LANG };
}

/** The variables that name the certificates that programs trust. */
export const trustVariables = [
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'GIT_SSL_CAINFO',
] as const;

/** The environment of verify and of the validator. */
export function gradingEnvironment(
  variables: Variables,
  { env, workingDir }: Pick<Container, 'env' | 'workingDir'>,
): Record<string, string> {
  const { PATH = base.PATH, LANG = base.LANG } = env;
  return { ...variablesAsEnvironment(variables), PATH, LANG, OFFSITE_WORKSPACE: workingDir };
}

/**
 * The harness's environment: the prompt as a file and, if it is short enough, as text, the case's variables,
 * and the profile's variables.
 */
export function harnessEnvironment(
  { prompt, variables, profile, agent }: Pick<TrialSpec, 'prompt' | 'variables' | 'profile' | 'agent'>,
  container: Pick<Container, 'env' | 'workingDir'>,
): Record<string, string> {
  return {
    ...gradingEnvironment(variables, container),
    // A longer prompt is in the file alone: with it, no program would start.
    ...(fitsEnvironment('OFFSITE_PROMPT', prompt) && { OFFSITE_PROMPT: prompt }),
    OFFSITE_PROMPT_FILE: sandboxPaths.prompt,
    ...(agent?.skills !== undefined && { OFFSITE_SKILLS: agent.skills }),
    ...profile.env,
  };
}

/**
 * The environment of install and prepare, which may use the network. If the host trusts extra certificates,
 * these scripts trust them too.
 */
export function preparationEnvironment(
  variables: Variables,
  container: Pick<Container, 'env' | 'workingDir'>,
  extraCertificates: boolean,
): Record<string, string> {
  const trust = Object.fromEntries(trustVariables.map((name) => [name, sandboxPaths.certificates]));
  return { ...gradingEnvironment(variables, container), ...(extraCertificates ? trust : {}) };
}

/** Paths that are the same in every sandbox. */
export const sandboxPaths = {
  /** Where the workspace is if neither the case nor its image says so. */
  workspace: '/workspace',
  /** Offsite puts its own files into a sandbox below this folder. */
  own: '/offsite',
  prompt: '/offsite/prompt.txt',
  prepare: '/offsite/prepare',
  /** What the program that the environment starts printed. */
  startUp: '/offsite/start-up',
  /** The harness's own files, outside the workspace. */
  harness: '/offsite/harness',
  /** The host's extra certificates; `certificates` holds these and the image's own. */
  extraCertificates: '/offsite/ca.pem',
  certificates: '/offsite/ca-bundle.pem',
  /**
   * Each validator gets its own folder below this one. It is not below `own`, which the sandbox's user may
   * own.
   */
  validators: '/offsite-validators',
  /** The Node of validators in images that have none. No user of a sandbox owns it either. */
  validatorNode: '/offsite-node',
} as const;

/**
 * Paths where a change is not a change of the system, besides the graded workspace: our own files, and what
 * the kernel shows.
 */
export const notTheSystem: readonly string[] = [
  sandboxPaths.own,
  sandboxPaths.validatorNode,
  '/dev',
  '/proc',
  '/sys',
];

/** Paths where every program that verify runs may write. A change there says nothing about the system. */
export const scratchPaths: readonly string[] = [
  ...notTheSystem,
  '/tmp',
  '/var/tmp',
  '/run',
  '/var/log',
  '/var/cache',
];

/**
 * Folders where programs may add files. They also run what they find there (package managers, browsers,
 * compiled programs), so files that the image has are part of the system. `/root` stands for every home.
 */
export const cachePaths: readonly string[] = ['/root/.cache', '/root/.npm/_cacache', '/root/.npm/_logs'];

/**
 * Folders where programs keep state with different names and contents each time, such as databases, lock
 * files and caches of build tools. Each program has its own entry in such a folder. `/root` stands for every
 * home.
 */
export const statePaths: readonly string[] = [
  '/srv',
  '/var/lib',
  '/root',
  // Other entries of `.local` and `.config` are found and run by programs, so they are not state.
  '/root/.config',
  '/root/.local/share',
  '/root/.local/state',
];

/** Folders that contain all of {@link cachePaths} and {@link statePaths}. */
export const stateRoots: readonly string[] = ['/root', '/home', '/srv', '/var/lib'];

/** Folder, user and variables of the commands of a sandbox. The host's variables are added. */
export interface CommandContext {
  /** Absolute; the folder of the workspace. */
  workspace: string;
  /** Default: root. */
  user: string | undefined;
  env: Readonly<Record<string, string>>;
}

/** The context of commands in an image that sets none itself. */
export const defaultContext: CommandContext = { workspace: sandboxPaths.workspace, user: undefined, env: {} };

/**
 * A sandbox's container with the sandbox's limits. The caller adds the image.
 *
 * @param passed what the host passes in
 */
export function containerSpec(
  sandbox: Sandbox,
  { workspace, user = sandbox.user, env }: CommandContext,
  container: Pick<ContainerSpec, 'network' | 'labels'>,
  passed: Record<string, string> = {},
): Omit<ContainerSpec, 'imageId'> {
  return {
    ...container,
    security: sandbox.security,
    memoryBytes: sandbox.memory,
    cpus: sandbox.cpus,
    diskBytes: sandbox.disk,
    pids: sandbox.pids,
    nofile: sandbox.nofile,
    filter: sandbox.seccomp,
    workingDir: workspace,
    env: { ...passed, ...env },
    ...(user !== undefined && { user }),
    ...(sandbox.runtime !== undefined && { runtime: sandbox.runtime }),
  };
}

/**
 * The engine network that a sandbox gets. Models and named hosts are reached through the gateway, not through
 * a network.
 */
export function engineNetwork({ network }: Sandbox): 'none' | 'open' {
  return network === 'open' ? 'open' : 'none';
}

/** The host's environment, from which sandboxes may ask for variables by name (`passEnv`). */
export interface HostEnvironment {
  variables: Readonly<NodeJS.ProcessEnv>;
  /** Names of the variables that hold a credential of a model or of the service. No sandbox gets these. */
  credentials: ReadonlySet<string>;
  /** The values of these variables. No sandbox gets them, under any name or inside another value. */
  keys: KnownKeys;
}

export const noHostEnvironment: HostEnvironment = {
  variables: {},
  credentials: new Set(),
  keys: new KnownKeys([]),
};

export function hostEnvironmentOf(config: CredentialConfig, variables: NodeJS.ProcessEnv): HostEnvironment {
  const credentials = credentialNames(config);
  return { variables, credentials, keys: new KnownKeys(namedKeys(config, variables)) };
}

/** The keys of the models and the service, each named after its variable. */
export function namedKeys(
  config: CredentialConfig,
  variables: NodeJS.ProcessEnv,
): [name: string, key: string][] {
  return [...credentialNames(config)].map((name) => [name, variables[name] ?? '']);
}

/**
 * The host variables that a sandbox gets: those that it names in `passEnv` and that are set, and no others.
 * Throws an `input` error for a variable that holds one of our credentials, and for one that decides how
 * programs run.
 */
export function passedEnvironment(
  { name: sandbox, passEnv }: Pick<Sandbox, 'name' | 'passEnv'>,
  { variables, credentials, keys }: HostEnvironment,
): Record<string, string> {
  const secrets = new Set([...credentials].map((name) => variables[name]).filter((value) => value));
  const passed: Record<string, string> = {};
  for (const name of passEnv) {
    const value = variables[name];
    if (isReservedName(name)) throw refused(sandbox, name, 'it decides how programs in the sandbox run');
    if (credentials.has(name) || secrets.has(value) || keys.find(value ?? '')) {
      throw refused(sandbox, name, 'it holds a key of a model or of the service, which no sandbox may see');
    }
    if (value !== undefined) passed[name] = value;
  }
  return passed;
}

/** Throws `KEY_IN_SANDBOX`, an `input` error, if something that a sandbox would get holds a key. */
export function refuseKeys(given: unknown, { keys }: HostEnvironment): void {
  const held = keys.findIn(given);
  if (!held) return;
  const { path, name, line, column } = held;
  throw inputError(
    'KEY_IN_SANDBOX',
    `${printPath(path)} holds the key in ${name} (line ${line}, column ${column}), which no sandbox may see`,
    { hint: 'Remove it. Models are reached through the gateway, which adds the key.' },
  );
}

function refused(sandbox: string, name: string, why: string): OffsiteError {
  return inputError(
    'PASS_ENV_REFUSED',
    `the sandbox "${sandbox}" asks for the variable ${name} of the host: ${why}`,
    { hint: 'Remove it from passEnv. Models are reached through the gateway, which adds the key.' },
  );
}
