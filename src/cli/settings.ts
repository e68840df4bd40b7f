import type { PlaceOptions } from '../api/context.ts';
import { dataFolderOf } from '../api/data-folder.ts';
import { Redactor } from '../redaction/redactor.ts';
import { findConfig } from '../suite/find-config.ts';
import { secretsOf } from '../trial/credential-names.ts';
import { openTerminal, type Terminal } from './terminal.ts';

/** Options that commands share. Each command takes those that it needs. */
export interface CommonOptions extends Omit<PlaceOptions, 'dryRun'> {
  json?: true | undefined;
}

/** What a short command works with. A command that opens anything takes a `CommandContext`. */
export interface Settings extends Terminal {
  dataFolder: string;
}

/** Reads only the configuration, if there is one, so that commands that just ask the daemon start faster. */
export async function openSettings({ config: named, dataFolder }: CommonOptions): Promise<Settings> {
  const { env } = process;
  const isThere = findConfig({ named, env }) !== undefined;
  const config = isThere ? (await import('../suite/load-config.ts')).loadConfig({ named, env }) : noConfig;
  const redactor = new Redactor(secretsOf(config, env));
  return {
    ...openTerminal((text) => redactor.text(text)),
    dataFolder: dataFolderOf(dataFolder, config, env),
  };
}

const noConfig = { service: undefined, models: {}, dataFolder: undefined };
