import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import type { Clock } from '../../base/clock.ts';
import { wholeNumber, withConfigAndData } from '../options.ts';
import type { Terminal } from '../terminal.ts';

export function modelsBenchCommand(clock: Clock, { out, err }: Terminal) {
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
      const { benchModel } = await import('../models/bench-model.ts');
      const { benchReport } = await import('../models/bench-report.ts');
      const bench = await benchModel(name, options, clock, { out, err });
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
