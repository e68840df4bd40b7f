import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../suite/config-file.ts';
import { ModelConfig } from '../suite/model-config.ts';

/** Says that it does nothing, whatever it is asked. */
const idle = `
turns: [{ text: This is a dry run; I do nothing., repeat: true }]
otherwise: This is a dry run; I do nothing.
`;

/** What a dry run is done with in place of what is configured. Disposing removes all of its results. */
export interface DryRun extends Disposable {
  config: Config;
  env: NodeJS.ProcessEnv;
  dataFolder: string;
}

/**
 * The same configuration with every model replaced by one that does nothing, and without a service to report
 * to but the embedded one.
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
    config: { ...config, models: Object.fromEntries(models), service: undefined },
    env,
    dataFolder: join(folder, 'data'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
