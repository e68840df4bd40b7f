import { Redactor } from '../redaction/redactor.ts';
import type { Config } from '../suite/config-file.ts';
import { credentialNames } from '../trial/host-environment.ts';

/** Takes the keys of models and service out of what is kept, printed and reported. */
export function redactorOf(config: Config, env: NodeJS.ProcessEnv): Redactor {
  return new Redactor(secretsOf(config, env));
}

/** The keys themselves. */
export function secretsOf(config: Config, env: NodeJS.ProcessEnv): string[] {
  return [...credentialNames(config)].flatMap((name) => env[name] ?? []);
}
