import type { PlaceOptions } from '../api/context.ts';
import { dataFolderOf } from '../api/data-folder.ts';
import { inputError, OffsiteError } from '../base/offsite-error.ts';
import { Redactor } from '../redaction/redactor.ts';
import { findConfig } from '../suite/find-config.ts';
import { secretsOf } from '../trial/prepare/credentials.ts';
import { openTerminal, type Terminal } from './terminal.ts';

/** Options that commands share. Each command takes those that it needs. */
export interface CommonOptions extends Omit<PlaceOptions, 'dryRun'> {
  json?: true | undefined;
}

/** What a short command works with. A command that opens anything takes a `CommandContext`. */
export interface Settings extends Terminal {
  dataFolder: string;
}

/**
 * Reads only the configuration, if there is one, so that commands that just ask the daemon start faster. One
 * that is being edited stops nobody from pausing a daemon whose data folder is named.
 */
export async function openSettings({ config: named, dataFolder }: CommonOptions): Promise<Settings> {
  const { env } = process;
  const isNamed = dataFolder !== undefined || Boolean(env.OFFSITE_HOME);
  const config = await readConfig(named, env).catch((error: unknown) => {
    if (!(error instanceof OffsiteError && error.kind === 'input')) throw error;
    if (isNamed) return noConfig;
    const hint =
      'A daemon that runs is not affected. To ask it anyway, name its data folder with --data-folder.';
    throw inputError(error.code, error.message, { hint, cause: error });
  });
  const redactor = new Redactor(secretsOf(config, env));
  return {
    ...openTerminal((text) => redactor.text(text)),
    dataFolder: dataFolderOf(dataFolder, config, env),
  };
}

async function readConfig(named: string | undefined, env: NodeJS.ProcessEnv) {
  if (findConfig({ named, env }) === undefined) return noConfig;
  return (await import('../suite/load-config.ts')).loadConfig({ named, env });
}

const noConfig = { service: undefined, models: {}, dataFolder: undefined };
