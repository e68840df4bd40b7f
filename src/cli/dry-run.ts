import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../suite/config-file.ts';
import { ModelConfig } from '../suite/model-config.ts';

/** The script of a model that always answers that it does nothing. */
const idle = `
turns: [{ text: This is a dry run; I do nothing., repeat: true }]
otherwise: This is a dry run; I do nothing.
`;

/** What a dry run uses instead of the configured things. Disposing removes all of its results. */
export interface DryRun extends Disposable {
  config: Config;
  env: NodeJS.ProcessEnv;
  dataFolder: string;
}

/**
 * The same configuration with every model replaced by one that does nothing, and with the embedded service
 * instead of the configured one.
 */
export function dryRunOf(config: Config, { OFFSITE_URL: _, ...env }: NodeJS.ProcessEnv): DryRun {
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
      // What is kept would outlive the data folder on the engine.
      workspaces: { budget: 0 },
    },
    env,
    dataFolder: join(folder, 'data'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
