import { Argument, Command } from '@commander-js/extra-typings';
import { rowSetupOf, sourceOfVariant, suiteOptions } from '../../api/plan-suite.ts';
import { printFileIssue } from '../../suite/file-issues.ts';
import { taskFormats } from '../../suite/tasks-source.ts';
import { importTasks } from '../../tasks/import/import-tasks.ts';
import { stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { withConfigAndData } from '../options.ts';
import { withTaskChoice } from '../task-options.ts';

export function importCommand() {
  return withTaskChoice(withConfigAndData(new Command('import')))
    .description('write tasks in another format as an Offsite suite, to edit')
    .addArgument(new Argument('<format>', 'the format of the tasks').choices(taskFormats))
    .argument('<path>', 'a folder of tasks, one task, a dataset.toml, a registry.json, or rows in *.jsonl')
    .requiredOption('--out <folder>', 'where the suite is written, with a folder for each case')
    .requiredOption('--variant <harness:model...>', "the suite's variants")
    .option('--profile <name>', 'a profile of offsite.yaml for the variants')
    .option('--sandbox <name>', 'a sandbox of offsite.yaml for the variants', 'local')
    .option('--force', 'replace what an earlier import has written')
    .option('--json', 'print one JSON document on stdout')
    .action(async (format, path, options) => {
      await using context = CommandContext.open(options);
      const { config, runners, out, err } = context;
      const { include, exclude, limit, seed, threshold, profile, sandbox } = options;
      const { except = [], keys } = suiteOptions({}, context);
      const variants = options.variant.map((name) => sourceOfVariant(name, { profile, sandbox }, runners));
      const { suites, imported, leftOut } = importTasks(
        { path, format, include, exclude, limit, seed, threshold, ...rowSetupOf(options) },
        {
          except,
          keys,
          images: config.images,
          variants,
          folder: options.out,
          force: options.force === true,
        },
      );
      if (options.json) out.json({ suites, imported, leftOut });
      else
        out.print(
          stack([
            text`wrote ${plural(imported.length, 'case')}: ${suites.join(', ')}`,
            ...(leftOut.length > 0 ? [text`${plural(leftOut.length, 'task')} left out:`] : []),
          ]),
        );
      for (const { id, reasons } of leftOut)
        for (const reason of reasons.slice(0, 1)) err.print(text`${id}: ${printFileIssue(reason)}`);
      process.exitCode = leftOut.some(({ state }) => state === 'unreadable')
        ? exitCodes.badInput
        : exitCodes.done;
    });
}
