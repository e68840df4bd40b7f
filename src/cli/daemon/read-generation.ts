import type { Generation } from '../../agent/daemon/generation.ts';
import type { Engine } from '../../engine/engine.ts';
import { type Config, loadConfig, SandboxConfig } from '../../suite/config-file.ts';
import { hostEnvironmentOf } from '../../trial/host-environment.ts';
import { type CommandContext, concurrencyFor } from '../context.ts';

/** What a configuration means for the trials that are begun by it. */
export async function generationOf(
  config: Config,
  context: CommandContext,
  engine: Engine,
  concurrency: number | undefined,
): Promise<Generation> {
  // Which sandboxes will be asked for is not known: so many that the largest of them fit.
  const sandboxes = [SandboxConfig.parse({}), ...Object.values(config.sandboxes)];
  return {
    config,
    gateway: await context.gateway(config),
    host: hostEnvironmentOf(config, context.env),
    concurrency: concurrency ?? config.concurrency ?? concurrencyFor(engine, sandboxes),
  };
}

/** Settings that a daemon has only once, and what in the configuration says them. */
const fixed: [name: string, of: (config: Config) => unknown][] = [
  ['service', ({ service }) => service],
  ['engine', ({ engine }) => engine],
  ['dataFolder', ({ dataFolder }) => dataFolder],
  ['caBundle', ({ caBundle }) => caBundle],
  ['snapshots', ({ snapshots }) => snapshots],
  ['daemon.listen', ({ daemon }) => daemon.listen],
];

/** The configuration as it is now, and the names of settings that changed in vain: they need a new start. Throws as `loadConfig`. */
export function readAgain(
  named: string | undefined,
  env: NodeJS.ProcessEnv,
  before: Config,
): { config: Config; inVain: string[] } {
  const config = loadConfig({ named, env });
  const inVain = fixed.filter(([, of]) => JSON.stringify(of(config)) !== JSON.stringify(of(before)));
  return { config, inVain: inVain.map(([name]) => name) };
}
