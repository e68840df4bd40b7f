import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Usage } from '../../contract/report.ts';
import type { Bench } from '../../setup/models/bench-model.ts';
import type { CheckedModel, Examined } from '../../setup/models/check-model.ts';
import type { Finding } from '../../setup/models/findings.ts';
import type { Config } from '../../suite/config-file.ts';
import { loadConfig } from '../../suite/load-config.ts';
import { type HttpModel, type Wire, whereOf, wires } from '../../suite/model-config.ts';
import { table } from '../../text/fit.ts';
import type { Content } from '../../text/output.ts';
import {
  joined,
  ours,
  type Printable,
  present,
  stack,
  styled,
  text,
  type Value,
} from '../../text/printable.ts';
import { duration } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { wholeNumber, withConfigAndData } from '../options.ts';
import { openTerminal, type Terminal } from '../terminal.ts';
import { modelsAddCommand } from './models-add.ts';

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

export function modelsBenchCommand(clock: Clock, terminal: Terminal) {
  return withConfigAndData(new Command('bench'))
    .description('measure throughput against parallelism, and say what maxParallel should be')
    .argument('<name>', "the model's name, as `offsite models` shows it")
    .option('--parallel <levels>', 'how many requests are in flight at each level', levelList, [1, 2, 4, 8])
    .option('--prompt-tokens <tokens>', 'about how long each prompt is', wholeNumber, 512)
    .option('--output-tokens <tokens>', 'the most tokens of each answer', wholeNumber, 128)
    .option('--requests <count>', 'requests at each level (default: three for each in flight)', wholeNumber)
    .option('--timeout <seconds>', 'how long to wait for an answer', wholeNumber, 300)
    .option('--json', 'print one JSON document on stdout')
    .action(async (name, options) => {
      const { benchModel } = await import('../../setup/models/bench-model.ts');
      await using context = CommandContext.open(options, { clock, terminal });
      const { out, err } = context;
      const { signal } = context.interruption({ doing: () => 'stopping; what was measured follows' });
      const note = (message: Printable) => err.print(message);
      const bench = await benchModel(context, name, options, { note, signal });
      const { interrupted, ...document } = bench;
      if (options.json) out.json({ ...document, interrupted: interrupted !== undefined });
      else if (bench.levels.length > 0) out.print(benchReport(bench));
      if (interrupted !== undefined) throw interrupted;
    });
}

function levelList(given: string): number[] {
  const levels = given.split(',').map(Number);
  const isLevel = (level: number) => Number.isInteger(level) && level >= 1 && level <= 1024;
  if (!levels.every(isLevel))
    throw new InvalidArgumentError('expected numbers from 1 to 1024, such as 1,2,4,8.');
  return levels;
}

/** The widest bar, in terminal cells. */
const widest = 30;

/** The measured levels with a bar for the throughput of each, and what `maxParallel` should be. */
function benchReport({ levels, recommendation, configured, used }: Bench): Printable {
  const most = Math.max(...levels.map(({ tokensPerSecond }) => tokensPerSecond));
  const numbers = ['parallel', 'tokens/s', 'each', 'first p50', 'first p95', 'answer p50', '429', 'errors'];
  const rows = levels.map((level) => [
    level.parallel,
    `${level.estimated ? '~' : ''}${level.tokensPerSecond.toFixed(1)}`,
    level.requestTokensPerSecond?.toFixed(1) ?? '–',
    duration(level.firstTokenP50),
    duration(level.firstTokenP95),
    duration(level.latencyP50),
    level.limited,
    level.failed,
    ours('█'.repeat(Math.round((widest * level.tokensPerSecond) / most) || 0)),
  ]);
  const columns = [...numbers.map((right) => ({ right })), ''];
  const failures = levels.flatMap(({ parallel, failure }) =>
    failure === undefined ? [] : [text`first failure at ${parallel}: ${failure}`],
  );
  const tokens = text`${used.inputTokens} tokens in, ${used.outputTokens} out, in ${used.requests} answers`;
  return stack([table(columns, rows), ...failures, tokens, advice(recommendation, configured)]);
}

function advice({ maxParallel, why }: Bench['recommendation'], configured: Bench['configured']): Printable {
  if (maxParallel === undefined) return text`no maxParallel can be recommended: ${why}`;
  const now =
    configured === undefined
      ? 'it is not set'
      : configured === maxParallel
        ? 'as it is set'
        : `it is set to ${typeof configured === 'number' ? configured : `auto, up to ${configured.most}`}`;
  return text`recommended: maxParallel: ${maxParallel} (${ours(now)}), because ${why}`;
}

export function modelsCheckCommand(clock: Clock, terminal: Terminal) {
  return withConfigAndData(new Command('check'))
    .description(
      'call a model for real, and print what it can do and what that means for offsite.yaml; exit 1 if it has a problem',
    )
    .argument('[name]', "the model's name, as `offsite models` shows it (default: the only one)")
    .option('--wire <wire>', "only one of the model's wires (default: its first, then all others)", wireName)
    .option('--quick', 'make only one minimal call')
    .option('--deep', 'measure by long prompts how much context it holds')
    .option('--up-to <tokens>', 'the longest prompt of --deep (default: its context window)', wholeNumber)
    .option('--timeout <seconds>', 'how long to wait for an answer (default: 120)', wholeNumber)
    .option('--json', 'print one JSON document on stdout')
    .action(async (name, options) => {
      // Read only now, so that the list of models comes fast.
      const { checkModel } = await import('../../setup/models/check-model.ts');
      await using context = CommandContext.open(options, { clock, terminal });
      const { out, err } = context;
      const { signal } = context.interruption({ doing: () => 'stopping' });
      const note = (message: Printable) => err.print(message);
      const checked = await checkModel(context, name, options, { note, signal });
      if (options.json) out.json(checked);
      else out.print(checkReport(checked));
      const { findings = [] } = checked.examined ?? {};
      if (findings.some(({ level }) => level === 'problem')) process.exitCode = exitCodes.belowThreshold;
    });
}

function wireName(text: string): Wire {
  const wire = wires.find((one) => one === text);
  if (!wire) throw new InvalidArgumentError(`expected one of ${wires.join(', ')}.`);
  return wire;
}

/** What a check found, for people. */
function checkReport(checked: CheckedModel): Printable {
  const { examined } = checked;
  const rows = [...answerRows(checked), ...(examined ? examinedRows(examined) : [])];
  const facts = table(['model', checked.model], rows);
  return examined && examined.findings.length > 0
    ? stack([facts, '', ...examined.findings.map(findingText)])
    : facts;
}

function answerRows(checked: CheckedModel): [Value, Value][] {
  const { answer, usage, failedTries, examined, pricesOf } = checked;
  return present([
    ['answer', text`"${answer.text}"${answer.stopped === 'done' ? '' : ` (${answer.stopped})`}`],
    ['answered by', checked.answeredBy ?? 'unknown'],
    ['wire', checked.wire],
    ['where', checked.where],
    ['latency', duration(checked.latencyMs)],
    !examined && ['tokens', tokensOf(usage)],
    usage.costUsd !== undefined && ['cost', `${usage.costUsd.toFixed(6)} USD (prices of ${pricesOf})`],
    ...failedTries.map(({ reason }): [Value, Value] => ['tried again', reason]),
  ]);
}

function tokensOf({ inputTokens, outputTokens }: Pick<Usage, 'inputTokens' | 'outputTokens'>): string {
  return `${inputTokens ?? 'unknown'} in, ${outputTokens ?? 'unknown'} out`;
}

function examinedRows(examined: Examined): [Value, Value][] {
  const { server, wires, tools, harnesses, speed, told: reported, measuredContext, used } = examined;
  const version = server?.version === undefined ? '' : text` ${server.version}`;
  const wiresIn = (...states: string[]) =>
    states.flatMap((state) => (wires ?? []).filter((one) => one.state === state).map(({ wire }) => wire));
  const unknown = wiresIn('failed', 'limited');
  const called = { works: 'work', unused: 'called, results not used' } as Readonly<Record<string, string>>;
  const names = harnesses
    .filter(({ state }) => state === 'works')
    .map(({ harness, isTranslated }) => `${harness}${isTranslated ? ' (translated)' : ''}`);
  const streams = { works: 'works', together: 'in one piece', failed: 'does not work' }[speed.streaming];
  const about = speed.estimated ? 'about ' : '';
  const more = used.unreported > 0 ? `; ${used.unreported} answers did not report any` : '';
  return present([
    server && ['server', text`${server.kind}${version}`],
    wires && ['speaks', wiresIn('works').join(', ')],
    unknown.length > 0 && ['not known', unknown.join(', ')],
    ['tools', text`${called[tools.state] ?? 'do not work'}${tools.parallel ? ', several at a time' : ''}`],
    tools.reason !== undefined && ['', tools.reason],
    ['works with', names.length === 0 ? 'no harness' : `${names.join(', ')}, and others of their wires`],
    ['streaming', streams],
    ['first token', duration(speed.firstTokenMs)],
    speed.tokensPerSecond !== undefined && [
      'speed',
      `${about}${speed.tokensPerSecond.toFixed(1)} tokens/s, median of ${speed.samples}`,
    ],
    reported.contextWindow !== undefined && [
      'context',
      `${reported.contextWindow} tokens, as the server says`,
    ],
    measuredContext && ['measured', measuredText(measuredContext)],
    ['tokens', `${tokensOf(used)}, in ${used.requests} requests${more}`],
  ]);
}

function measuredText({ holds, fails, stopped }: NonNullable<Examined['measuredContext']>): string {
  const how = fails?.how === 'cut' ? 'cuts' : 'refuses';
  const more = fails ? `, ${how} ${fails.length}` : ', the longest that was tried';
  return `holds ${holds} tokens${more}${stopped === undefined ? '' : `; ended early: ${stopped}`}`;
}

function findingText({ level, says, set }: Finding): Printable {
  const mark = level === 'problem' ? styled('red', ours('problem')) : styled('yellow', ours('advice'));
  return set === undefined
    ? text`${mark}: ${says}`
    : joined([text`${mark}: ${says}`, text`set it in offsite.yaml: ${set}`], ' – ');
}
