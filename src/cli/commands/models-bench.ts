import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import type { Clock } from '../../base/clock.ts';
import type { Printable } from '../../text/printable.ts';
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
      const { benchReport } = await import('../models/bench-report.ts');
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
