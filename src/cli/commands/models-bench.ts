import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import type { Clock } from '../../base/clock.ts';
import type { Bench } from '../../setup/models/bench-model.ts';
import { table } from '../../text/fit.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { duration } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { wholeNumber, withConfigAndData } from '../options.ts';
import type { Terminal } from '../terminal.ts';

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
