import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { ModelConfig } from '../../src/suite/model-config.ts';

/** The script of a model that has one word for everything. */
export const sayingHello = 'turns: [{ text: hello, repeat: true }]\n';

/**
 * Models that answer from these scripts, with more keys if there are some. Call it in the file: the scripts
 * are there until its tests have ended.
 */
export function scriptedModels<Name extends string>(
  scripts: Readonly<Record<Name, string>>,
  keysOf: (name: Name) => object = () => ({}),
): Record<Name, ModelConfig> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-scripts-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const models: Partial<Record<Name, ModelConfig>> = {};
  for (const [name, script] of Object.entries(scripts) as [Name, string][]) {
    const scripted = join(folder, `${name}.yaml`);
    writeFileSync(scripted, script);
    models[name] = ModelConfig.parse({ scripted, ...keysOf(name) });
  }
  return models as Record<Name, ModelConfig>;
}
