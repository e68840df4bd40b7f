import { recentBatches } from '../../ledger/recent-batches.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { type Config, ConfigFile, loadConfig } from '../../suite/config-file.ts';
import { dataFolderOf } from '../data-folder.ts';
import type { ValuesOf, Word } from './candidates.ts';

/** Values on this machine: batches of the data folder, and names in the `offsite.yaml` that a command would read. */
export function machineValues(env: NodeJS.ProcessEnv): ValuesOf {
  return (name, command) => {
    if (name === '--profile') return namesOf(configOf(env).profiles);
    if (name === '--sandbox') return namesOf({ local: undefined, ...configOf(env).sandboxes });
    if (name === 'name' && modelCommands.has(command.join(' '))) return namesOf(configOf(env).models);
    if (!batchNames.has(name)) return undefined;
    const dataFolder = dataFolderOf(undefined, configOf(env), env);
    return recentBatches(dataFolder, shown).map(({ id, suite }) => ({ value: id, description: suite }));
  };
}

/** Commands whose argument names a model that is there. */
const modelCommands = new Set(['models check', 'models bench']);

/** While somebody edits the file, it is often wrong. */
function configOf(env: NodeJS.ProcessEnv): Config {
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
