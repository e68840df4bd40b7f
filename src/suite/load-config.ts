import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { type Config, ConfigFile, withDefaultBudgets } from './config-file.ts';
import { type ConfigSearch, configFolders, findConfig } from './find-config.ts';
import { SuiteFile } from './suite-file.ts';
import { readYamlFile } from './yaml-file.ts';

/** A file may have only comments. */
const ConfigOrNothing = z.preprocess((value) => value ?? {}, ConfigFile);

/**
 * Finds and reads `offsite.yaml`. Reads the named file, or the one in `OFFSITE_CONFIG`. If neither is given,
 * it reads the first that exists where {@link configFolders} says.
 * Files are not merged. Throws an `input` error if a named file does not exist.
 */
export function loadConfig(options: ConfigSearch): Config {
  const file = findConfig(options);
  if (file === undefined) {
    const searched = [...new Set(configFolders(options).map((folder) => resolve(folder)))];
    return { ...ConfigFile.parse({}), file, searched };
  }
  const { value: config, issue } = readYamlFile(file, ConfigOrNothing, {
    others: { 'a suite file': SuiteFile },
  });
  const absolute = (path: string | undefined) =>
    path === undefined ? undefined : resolve(dirname(file), path);
  const models = Object.fromEntries(
    Object.entries(config.models).map(([name, model]) => [
      name,
      'scripted' in model
        ? { ...model, scripted: resolve(dirname(file), model.scripted) }
        : 'replay' in model
          ? { ...model, replay: resolve(dirname(file), model.replay) }
          : model,
    ]),
  );
  const { storage, tls } = config.fleet;
  return {
    ...config,
    models,
    budgets: withDefaultBudgets(config.budgets, models),
    fleet: {
      ...config.fleet,
      ...(storage && 'folder' in storage && { storage: { folder: resolve(dirname(file), storage.folder) } }),
      ...(typeof tls === 'object' && {
        tls: Object.fromEntries(Object.entries(tls).map(([name, path]) => [name, absolute(path)])),
      }),
    },
    engines: config.engines?.map((engine) =>
      typeof engine === 'string' ? engine : { ...engine, certificates: absolute(engine.certificates) },
    ),
    allowOutside: config.allowOutside.map((path) => resolve(dirname(file), path)),
    caBundle: absolute(config.caBundle),
    dataFolder: absolute(config.dataFolder),
    file,
    issue,
  };
}
