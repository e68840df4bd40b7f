import type { Config } from '../../suite/config-file.ts';
import { loadConfig } from '../../suite/load-config.ts';

/** Settings that need a restart, and where they are in the configuration. */
const fixed: [name: string, of: (config: Config) => unknown][] = [
  ['service', ({ service }) => service],
  ['engine', ({ engine }) => engine],
  ['engines', ({ engines }) => engines],
  ['dataFolder', ({ dataFolder }) => dataFolder],
  ['caBundle', ({ caBundle }) => caBundle],
  ['lease', ({ lease }) => lease],
  ['snapshots', ({ snapshots }) => snapshots],
  ['daemon.listen', ({ daemon }) => daemon.listen],
];

/**
 * Reads the configuration again. `needRestart` names changed settings that need a restart. Throws as
 * `loadConfig` does.
 */
export function readAgain(
  named: string | undefined,
  env: NodeJS.ProcessEnv,
  before: Config,
): { config: Config; needRestart: string[] } {
  const config = loadConfig({ named, env });
  const changed = fixed.filter(([, of]) => JSON.stringify(of(config)) !== JSON.stringify(of(before)));
  return { config, needRestart: changed.map(([name]) => name) };
}
