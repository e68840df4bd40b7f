import type { Config } from '../../suite/config-file.ts';

/**
 * The parts of a configuration that name credentials. This file loads no schema: commands that only ask a
 * daemon read it too.
 */
export type CredentialConfig = Pick<Config, 'service' | 'models'> & { fleet?: Config['fleet'] };

/** Where AWS's packages find the keys of a fleet's bucket. */
const bucketKeys = ['AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'];

/** The names of all variables that the configuration names for credentials. */
export function credentialNames({ service, models, fleet }: CredentialConfig): Set<string> {
  const ofModels = Object.values(models).flatMap((model) => ('apiKeyEnv' in model ? [model.apiKeyEnv] : []));
  const names = ['OFFSITE_API_KEY', service?.apiKeyEnv, fleet?.apiKeyEnv, fleet?.codecKeyEnv, ...ofModels];
  const ofStorage = fleet?.storage && 's3' in fleet.storage ? bucketKeys : [];
  return new Set([...names, ...ofStorage].filter((name) => name !== undefined));
}

/** The values of the models' and the service's keys. */
export function secretsOf(config: CredentialConfig, env: NodeJS.ProcessEnv): string[] {
  return [...credentialNames(config)].flatMap((name) => env[name] ?? []);
}
