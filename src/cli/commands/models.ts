import { Command } from '@commander-js/extra-typings';
import { type Clock, systemClock } from '../../clock.ts';
import { type Config, loadConfig } from '../../suite/config-file.ts';
import { type Wire, wires } from '../../suite/model-config.ts';
import type { Content } from '../../text/output.ts';
import { table } from '../../text/table.ts';
import { withConfigAndData } from '../options.ts';
import { openTerminal, type Terminal } from '../terminal.ts';
import { modelsAddCommand } from './models-add.ts';
import { modelsCheckCommand } from './models-check.ts';

/** @param clock times the waits between the tries of `check` */
export function modelsCommand(clock: Clock = systemClock, terminal: Terminal = openTerminal()) {
  return withConfigAndData(new Command('models'))
    .description('list the models of offsite.yaml, and whether their keys are set')
    .option('--json', 'print one JSON document on stdout')
    .enablePositionalOptions()
    .action((options) => {
      const models = listed(loadConfig({ named: options.config, env: process.env }), process.env);
      if (options.json) terminal.out.json(models);
      else terminal.out.print(listing(models));
    })
    .addCommand(modelsAddCommand(clock, terminal))
    .addCommand(modelsCheckCommand(clock, terminal));
}

interface ListedModel {
  name: string;
  wires: readonly Wire[];
  /** The model's baseUrl, or the file of its script. */
  where: string;
  key: { variable: string; set: boolean } | undefined;
  pricesOf: string | undefined;
  aliases: string[];
}

function listed({ models }: Config, env: NodeJS.ProcessEnv): ListedModel[] {
  return Object.entries(models).map(([name, model]) => {
    const variable = 'scripted' in model ? undefined : model.apiKeyEnv;
    return {
      name,
      wires: 'scripted' in model ? wires : model.wire,
      where: 'scripted' in model ? model.scripted : model.baseUrl,
      key: variable === undefined ? undefined : { variable, set: Boolean(env[variable]) },
      pricesOf: model.prices?.date,
      aliases: model.aliases,
    };
  });
}

function listing(models: readonly ListedModel[]): Content {
  if (models.length === 0)
    return 'no models are configured: `offsite models add` writes one into offsite.yaml';
  const titles = ['model', 'wire', 'where', 'key', 'prices of', 'aliases'];
  return table(
    titles.map((title) => ({ title })),
    models.map(({ name, wires: spoken, where, key, pricesOf, aliases }) => [
      name,
      spoken.length === wires.length ? 'all' : spoken.join(', '),
      where,
      key === undefined ? 'none needed' : `${key.variable}: ${key.set ? 'set' : 'NOT SET'}`,
      pricesOf ?? '–',
      aliases.join(', '),
    ]),
  );
}
