import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../suite/config-file.ts';
import { ModelConfig } from '../suite/model-config.ts';

/** The script of a model that does nothing, and fills in what a judge is asked for. */
const idle = `
fillForms: true
turns: [{ text: This is a dry run; I do nothing., repeat: true }]
otherwise: This is a dry run; I do nothing.
`;

/** What a dry run uses instead of the configured things. Disposing removes all of its results. */
export interface DryRun extends Disposable {
  config: Config;
  env: NodeJS.ProcessEnv;
  dataFolder: string;
  /** What it does not try, for people: the models that it replaces, and the service. */
  untried: readonly string[];
}

/**
 * The same configuration with every model replaced by one that does nothing, and with the embedded service
 * instead of the configured one.
 */
export function dryRunOf(config: Config, { OFFSITE_URL: url, ...env }: NodeJS.ProcessEnv): DryRun {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-dry-run-'));
  const script = join(folder, 'idle.yaml');
  writeFileSync(script, idle);
  const models = Object.entries(config.models).map(([name, { aliases }]) => [
    name,
    ModelConfig.parse({ scripted: script, aliases }),
  ]);
  return {
    config: {
      ...config,
      models: Object.fromEntries(models),
      service: undefined,
      // Kept images would stay on the engine after the data folder is removed.
      workspaces: { budget: 0 },
    },
    env,
    untried: untriedBy(config, url),
    dataFolder: join(folder, 'data'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function untriedBy(config: Config, url = config.service?.url): string[] {
  const real = Object.entries(config.models).filter(([, model]) => !('scripted' in model));
  const names = real.map(([name]) => name);
  const keys = new Set(real.flatMap(([, model]) => ('apiKeyEnv' in model && model.apiKeyEnv) || []));
  return [
    ...(names.length > 0
      ? [`models (${names.join(', ')}): agents did nothing, judges gave full marks or the first choice`]
      : []),
    ...(keys.size > 0 ? [`keys (${[...keys].join(', ')})`] : []),
    ...(url === undefined ? [] : [`the service ${url}`]),
  ];
}
