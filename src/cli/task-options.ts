import { type Command, InvalidArgumentError, Option, type OptionValues } from '@commander-js/extra-typings';
import { taskFormats, testParsers } from '../suite/tasks-source.ts';
import { finiteNumber, seed, wholeNumber } from './options.ts';

const forTasks = 'Options for tasks in other formats:';

/** Adds the options that name tasks in place of a suite file. */
export function withTasks<Arguments extends unknown[], Options extends OptionValues>(
  command: Command<Arguments, Options>,
) {
  return withTaskChoice(command)
    .option('--variant <variant...>', 'only these variants of the suite; with --tasks: HARNESS:MODEL')
    .optionsGroup(forTasks)
    .option(
      '--tasks <path>',
      'tasks in another format (Harbor, Terminal-Bench, SWE-bench), in place of a suite file',
    )
    .addOption(new Option('--format <format>', 'only tasks of this format').choices(taskFormats))
    .option('--strict-tasks', 'start nothing if one of the tasks cannot run here')
    .option('--profile <name>', 'a profile of offsite.yaml for the variants')
    .option('--sandbox <name>', 'a sandbox of offsite.yaml for the variants (default: local)')
    .optionsGroup('Options:');
}

/** Adds the options that choose tasks of a set, that set rows up, and that say what rewards must reach. */
export function withTaskChoice<Arguments extends unknown[], Options extends OptionValues>(
  command: Command<Arguments, Options>,
) {
  return withRowSetup(
    command
      .option('--include <glob...>', 'only cases or tasks whose ids match one of these')
      .optionsGroup('Options for a sample:')
      .option('--exclude <glob...>', 'leave out cases or tasks whose ids match one of these')
      .option('--limit <n>', 'at most this many of them', wholeNumber)
      .option('--seed <n>', 'in an order that depends on this number', seed)
      .optionsGroup(forTasks)
      .option('--threshold <number>', 'what each reward must reach (default: 1)', finiteNumber),
  );
}

/** Adds the options that say what rows of SWE-bench do not: their environment, and how their tests run. */
export function withRowSetup<Arguments extends unknown[], Options extends OptionValues>(
  command: Command<Arguments, Options>,
) {
  return command
    .optionsGroup('Options for rows of SWE-bench:')
    .option('--image <pattern>', 'their images, such as my/swe-{instance_id}')
    .option('--build <folder>', 'in place of an image: a folder with a Dockerfile')
    .option(
      '--build-arg <name=value>',
      'an ARG of the Dockerfile, such as AT={base_commit}; may be repeated',
      buildArg,
    )
    .option('--test-command <bash>', 'what runs the tests, such as "pytest -rA {files}"')
    .addOption(new Option('--test-parser <parser>', 'how their output is read').choices(testParsers))
    .optionsGroup('Options:');
}

function buildArg(text: string, others: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^(\w+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('expected NAME=VALUE.');
  return { ...others, [name]: value };
}
