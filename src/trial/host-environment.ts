import { OffsiteError } from '../base/offsite-error.ts';
import { printPath } from '../contract/errors.ts';
import { KnownKeys } from '../redaction/redactor.ts';
import type { Sandbox } from '../suite/plan.ts';
import { isReservedName } from '../suite/variables.ts';
import { type CredentialConfig, credentialNames } from './credential-names.ts';

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
  throw new OffsiteError(
    `${printPath(path)} holds the key in ${name} (line ${line}, column ${column}), which no sandbox may see`,
    {
      code: 'KEY_IN_SANDBOX',
      kind: 'input',
      hint: 'Remove it. Models are reached through the gateway, which adds the key.',
    },
  );
}

function refused(sandbox: string, name: string, why: string): OffsiteError {
  return new OffsiteError(`the sandbox "${sandbox}" asks for the variable ${name} of the host: ${why}`, {
    code: 'PASS_ENV_REFUSED',
    kind: 'input',
    hint: 'Remove it from passEnv. Models are reached through the gateway, which adds the key.',
  });
}
