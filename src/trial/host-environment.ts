import { OffsiteError } from '../offsite-error.ts';
import type { Config } from '../suite/config-file.ts';
import type { Sandbox } from '../suite/plan.ts';
import { isReservedName } from '../suite/variables.ts';

/** The host's environment, as far as sandboxes may ask for it by name (`passEnv`). */
export interface HostEnvironment {
  variables: Readonly<NodeJS.ProcessEnv>;
  /** Names of those that hold a credential of a model or of the service: no sandbox gets them, whatever it asks for. */
  credentials: ReadonlySet<string>;
}

export const noHostEnvironment: HostEnvironment = { variables: {}, credentials: new Set() };

/** The names of all variables in which the configuration keeps credentials. */
export function credentialNames({ service, models }: Pick<Config, 'service' | 'models'>): Set<string> {
  const ofModels = Object.values(models).flatMap((model) => ('apiKeyEnv' in model ? [model.apiKeyEnv] : []));
  const names = ['OFFSITE_API_KEY', service?.apiKeyEnv, ...ofModels];
  return new Set(names.filter((name) => name !== undefined));
}

/**
 * What a sandbox is given of the host's environment: what it names in `passEnv`, of that what is set, and nothing else. Throws an
 * `input` error for a name that holds a credential of ours, or the value of one, and for one that decides how programs run.
 */
export function passedEnvironment(
  { name: sandbox, passEnv }: Pick<Sandbox, 'name' | 'passEnv'>,
  { variables, credentials }: HostEnvironment,
): Record<string, string> {
  const secrets = new Set([...credentials].map((name) => variables[name]).filter((value) => value));
  const passed: Record<string, string> = {};
  for (const name of passEnv) {
    const value = variables[name];
    if (isReservedName(name)) throw refused(sandbox, name, 'it decides how programs in the sandbox run');
    if (credentials.has(name) || secrets.has(value)) {
      throw refused(sandbox, name, 'it holds a key of a model or of the service, which no sandbox may see');
    }
    if (value !== undefined) passed[name] = value;
  }
  return passed;
}

function refused(sandbox: string, name: string, why: string): OffsiteError {
  return new OffsiteError(`the sandbox "${sandbox}" asks for the variable ${name} of the host: ${why}`, {
    code: 'PASS_ENV_REFUSED',
    kind: 'input',
    hint: 'Take it out of passEnv. Models are reached through the gateway, which puts the key in.',
  });
}
