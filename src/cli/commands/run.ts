import { Command, Option } from '@commander-js/extra-typings';
import { rate, wholeNumber, withAllowOutside, withService } from '../options.ts';
import { withTasks } from '../planned-suite.ts';
import { withResults } from '../results/options.ts';
import { trialsWanted } from '../run/options.ts';
import { runSuite } from '../run/run-suite.ts';

export function runCommand() {
  return withResults(withTasks(withAllowOutside(withService(new Command('run')))))
    .description(
      'run a suite: every case on every variant, each trial in its own sandbox, each result reported',
    )
    .argument('[file]', 'the suite file (YAML)')
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option(
      '--trials <n>',
      "trials of each run (default: the suite's); `auto`: further ones until the pass rate is known precisely",
      trialsWanted,
    )
    .option('--dry-run', 'rehearse the suite: agents do nothing, judges give full marks, nothing is reported')
    .optionsGroup('Options for a sample:')
    .option(
      '--precision <rate>',
      'with --trials auto: half the width of the 95 % interval (default: 0.05, ±5 points)',
      rate,
    )
    .option(
      '--max-trials <n>',
      'with --trials auto: the most trials of a case on a variant (default: 20)',
      wholeNumber,
    )
    .optionsGroup('Options for a replay:')
    .addOption(
      new Option(
        '--replay <batch>',
        'answer all requests to models from the exchanges of a batch on this machine',
      ).conflicts('dryRun'),
    )
    .addOption(
      new Option('--on-miss <what>', 'with --replay: how to answer a request that is not recorded')
        .choices(['fail', 'live'] as const)
        .default('fail' as const),
    )
    .optionsGroup('Options:')
    .action(async (file, options) => {
      process.exitCode = await runSuite(file, options);
    });
}
