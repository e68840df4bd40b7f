import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option, type OptionValues } from '@commander-js/extra-typings';
import { OffsiteError } from '../base/offsite-error.ts';
import { type RowTest, type TasksSource, testParsers } from '../suite/tasks-source.ts';

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

export interface RowOptions {
  image?: string | undefined;
  build?: string | undefined;
  buildArg?: Record<string, string> | undefined;
  testCommand?: string | undefined;
  testParser?: RowTest['parser'] | undefined;
}

/** What the options say of rows. Throws an `input` error for those that contradict each other. */
export function rowSetupOf({ image, build, buildArg: args, testCommand, testParser }: RowOptions) {
  if (image !== undefined && build !== undefined)
    throw refused('--image and --build cannot be used together', 'Name one of them.');
  if (args && build === undefined) throw refused('--build-arg needs --build', 'Name the folder to build.');
  if (build !== undefined && !statSync(build, { throwIfNoEntry: false })?.isDirectory())
    throw refused(`there is no folder ${build}`, 'Name the folder that has the Dockerfile.');
  const setup: Pick<TasksSource, 'image' | 'build' | 'test'> = {
    ...(image !== undefined && { image }),
    ...(build !== undefined && {
      build: { context: resolve(build), dockerfile: 'Dockerfile', args: args ?? {} },
    }),
    test: { command: testCommand, parser: testParser ?? 'pytest' },
  };
  return setup;
}

function buildArg(text: string, others: Record<string, string> = {}): Record<string, string> {
  const [, name, value] = /^(\w+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('expected NAME=VALUE.');
  return { ...others, [name]: value };
}

function refused(message: string, hint: string): OffsiteError {
  return new OffsiteError(message, { code: 'TASKS_REFUSED', kind: 'input', hint });
}
