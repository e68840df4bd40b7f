import { OffsiteError } from '../../base/offsite-error.ts';
import type { Config } from '../../suite/config-file.ts';
import { findConfig } from '../../suite/find-config.ts';
import type { ValuesOf, Word } from './candidates.ts';

/**
 * Values on this machine: batches of the data folder, and names in the `offsite.yaml` that a command would
 * read. The modules that read them are loaded only for names that have such values: a shell waits for this.
 */
export function machineValues(env: NodeJS.ProcessEnv): ValuesOf {
  return async (name, command) => {
    if (name === '--profile') return namesOf((await configOf(env)).profiles);
    if (name === '--sandbox') return namesOf({ local: undefined, ...(await configOf(env)).sandboxes });
    if (name === 'name' && modelCommands.has(command.join(' '))) return namesOf((await configOf(env)).models);
    if (!batchNames.has(name)) return undefined;
    const { dataFolderOf } = await import('../../api/data-folder.ts');
    const { recentBatches } = await import('../../ledger/recent-batches.ts');
    const isThere = env.OFFSITE_CONFIG !== undefined || findConfig({ env }) !== undefined;
    const config = isThere ? await configOf(env) : {};
    const dataFolder = dataFolderOf(undefined, config, env);
    return recentBatches(dataFolder, shown).map(({ id, suite }) => ({ value: id, description: suite }));
  };
}

/** Commands whose argument names a configured model. */
const modelCommands = new Set(['models check', 'models bench']);

/** The configuration; the defaults if the file is invalid, as it often is while somebody edits it. */
async function configOf(env: NodeJS.ProcessEnv): Promise<Config> {
  const { ConfigFile } = await import('../../suite/config-file.ts');
  const { loadConfig } = await import('../../suite/load-config.ts');
  try {
    return loadConfig({ env });
  } catch (error) {
    if (error instanceof OffsiteError) return { ...ConfigFile.parse({}), file: undefined };
    throw error;
  }
}

/** How many batches are offered. */
const shown = 20;

/** Arguments and placeholders of options that take the id of a batch. */
const batchNames = new Set(['batch', 'what', 'a', 'b']);

function namesOf(map: Readonly<Record<string, unknown>>): Word[] {
  return Object.keys(map).map((value) => ({ value, description: '' }));
}
