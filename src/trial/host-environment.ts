import { printPath } from '../contract/errors.ts';
import { OffsiteError } from '../offsite-error.ts';
import { KnownKeys } from '../redaction/known-keys.ts';
import type { Config } from '../suite/config-file.ts';
import type { Sandbox } from '../suite/plan.ts';
import { isReservedName } from '../suite/variables.ts';

/** The host's environment, as far as sandboxes may ask for it by name (`passEnv`). */
export interface HostEnvironment {
  variables: Readonly<NodeJS.ProcessEnv>;
  /**
   * Names of those that hold a credential of a model or of the service: no sandbox gets them, whatever it
   * asks for.
   */
  credentials: ReadonlySet<string>;
  /** What they hold: no sandbox gets any of it, whatever it is called or wrapped in. */
  keys: KnownKeys;
}

export const noHostEnvironment: HostEnvironment = {
  variables: {},
  credentials: new Set(),
  keys: new KnownKeys([]),
};

export function hostEnvironmentOf(
  config: Pick<Config, 'service' | 'models'>,
  variables: NodeJS.ProcessEnv,
): HostEnvironment {
  const credentials = credentialNames(config);
  return { variables, credentials, keys: new KnownKeys(namedKeys(config, variables)) };
}

/** The keys of models and service, each called as its variable. */
export function namedKeys(
  config: Pick<Config, 'service' | 'models'>,
  variables: NodeJS.ProcessEnv,
): [name: string, key: string][] {
  return [...credentialNames(config)].map((name) => [name, variables[name] ?? '']);
}

/** The names of all variables in which the configuration keeps credentials. */
export function credentialNames({ service, models }: Pick<Config, 'service' | 'models'>): Set<string> {
  const ofModels = Object.values(models).flatMap((model) => ('apiKeyEnv' in model ? [model.apiKeyEnv] : []));
  const names = ['OFFSITE_API_KEY', service?.apiKeyEnv, ...ofModels];
  return new Set(names.filter((name) => name !== undefined));
}

/**
 * What a sandbox is given of the host's environment: what it names in `passEnv`, of that what is set, and
 * nothing else. Throws an
 * `input` error for a name that holds a credential of ours, or the value of one, and for one that decides how
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

/** Throws `KEY_IN_SANDBOX`, an input error, where something that a sandbox would be given holds a key. */
export function refuseKeys(given: unknown, { keys }: HostEnvironment): void {
  const held = keys.findIn(given);
  if (!held) return;
  const { path, name, line, column } = held;
  throw new OffsiteError(
    `${printPath(path)} holds the key in ${name} (line ${line}, column ${column}), which no sandbox may see`,
    {
      code: 'KEY_IN_SANDBOX',
      kind: 'input',
      hint: 'Take it out. Models are reached through the gateway, which puts the key in.',
    },
  );
}

function refused(sandbox: string, name: string, why: string): OffsiteError {
  return new OffsiteError(`the sandbox "${sandbox}" asks for the variable ${name} of the host: ${why}`, {
    code: 'PASS_ENV_REFUSED',
    kind: 'input',
    hint: 'Take it out of passEnv. Models are reached through the gateway, which puts the key in.',
  });
}
