import { Command } from '@commander-js/extra-typings';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Config } from '../../suite/config-file.ts';
import { loadConfig } from '../../suite/load-config.ts';
import { type HttpModel, type Wire, whereOf, wires } from '../../suite/model-config.ts';
import { table } from '../../text/fit.ts';
import type { Content } from '../../text/output.ts';
import { withConfigAndData } from '../options.ts';
import { openTerminal, type Terminal } from '../terminal.ts';
import { modelsAddCommand } from './models-add.ts';
import { modelsBenchCommand } from './models-bench.ts';
import { modelsCheckCommand } from './models-check.ts';

/** @param clock times the waits between the tries of `check` */
export function modelsCommand(clock: Clock = systemClock, terminal: Terminal = openTerminal()) {
  return new Command('models')
    .description('list, add and try the models of offsite.yaml')
    .addCommand(modelsListCommand(terminal), { isDefault: true })
    .addCommand(modelsAddCommand(clock, terminal))
    .addCommand(modelsCheckCommand(clock, terminal))
    .addCommand(modelsBenchCommand(clock, terminal));
}

function modelsListCommand(terminal: Terminal) {
  return withConfigAndData(new Command('list'))
    .description('list the models, and whether their keys are set (what `models` alone does)')
    .option('--json', 'print one JSON document on stdout')
    .action((options) => {
      const { env } = process;
      const config = loadConfig({ named: options.config, env });
      const models = listed(config, env);
      if (options.json) terminal.out.json(models);
      else terminal.out.print(listing(models));
    });
}

interface ListedModel {
  name: string;
  wires: readonly Wire[];
  /** The model's baseUrl, or the file of its script. */
  where: string;
  key: { variable: string; set: boolean } | undefined;
  pricesOf: string | undefined;
  aliases: string[];
  /** The limit of requests in flight. */
  maxParallel?: HttpModel['maxParallel'];
}

function listed({ models }: Config, env: NodeJS.ProcessEnv): ListedModel[] {
  return Object.entries(models).map(([name, model]) => {
    const variable = 'baseUrl' in model ? model.apiKeyEnv : undefined;
    return {
      name,
      wires: 'baseUrl' in model ? model.wire : wires,
      where: whereOf(model),
      key: variable === undefined ? undefined : { variable, set: Boolean(env[variable]) },
      pricesOf: model.prices?.date,
      aliases: model.aliases,
      maxParallel: 'baseUrl' in model ? model.maxParallel : undefined,
    };
  });
}

function listing(models: readonly ListedModel[]): Content {
  if (models.length === 0)
    return 'no models are configured: `offsite models add` writes one into offsite.yaml';
  const isLimited = models.some(({ maxParallel }) => maxParallel !== undefined);
  const parallel = isLimited ? ['parallel'] : [];
  const titles = ['model', 'wire', 'where', 'key', 'prices of', ...parallel, 'aliases'];
  return table(
    titles,
    models.map(({ name, wires: spoken, where, key, pricesOf, maxParallel, aliases }) => [
      name,
      spoken.length === wires.length ? 'all' : spoken.join(', '),
      where,
      key === undefined ? 'none needed' : `${key.variable}: ${key.set ? 'set' : 'NOT SET'}`,
      pricesOf ?? '–',
      ...(isLimited ? [parallelText(maxParallel)] : []),
      aliases.join(', '),
    ]),
  );
}

function parallelText(limit: ListedModel['maxParallel']): string {
  return typeof limit === 'object' ? `auto: up to ${limit.most}` : String(limit ?? '–');
}
