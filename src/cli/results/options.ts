import { type Command, Option, type OptionValues } from '@commander-js/extra-typings';
import { inputError } from '../../base/offsite-error.ts';
import { rate } from '../options.ts';
import type { RegressionGates } from '../regression.ts';
import { refuseSharedFiles, requireWritable } from '../write-text.ts';

/** Adds the options that say where the results of trials go and when they fail the command. */
export function withResults<Arguments extends unknown[], Options extends OptionValues>(
  command: Command<Arguments, Options>,
) {
  return command
    .option(
      '--fail-under <rate>',
      'exit 1 when the pass rate of a batch or a set is below this (0 to 1); void trials are left out of it, ' +
        'and any void trial ends with 3',
      rate,
    )
    .option('--html <file>', 'also write the batch as one page, as `offsite export --html` does')
    .optionsGroup('Options for CI:')
    .option('--junit <file>', 'also write the results as JUnit XML')
    .option('--ctrf <file>', 'also write the results as CTRF, a JSON format of test reports')
    .addOption(
      new Option(
        '--compare-to <batch>',
        'compare the results with a batch on this machine; `last`: with the last finished one of the suite; ' +
          "`baseline`: with the service's baseline",
      ).conflicts('dryRun'),
    )
    .option('--fail-on-regression', 'exit 1 if a variant is worse than there by more than noise')
    .option('--fail-on-case-regression', 'exit 1 if a case always passed there and always fails here')
    .optionsGroup('Options:');
}

export interface ResultOptions extends RegressionGates {
  json?: true | undefined;
  dataFolder?: string | undefined;
  dryRun?: true | undefined;
  failUnder?: number | undefined;
  junit?: string | undefined;
  ctrf?: string | undefined;
  html?: string | undefined;
  compareTo?: string | undefined;
}

/** Throws an `input` error for an option that means something only together with another one. */
export function throwMissingOption([option, needed]: readonly [option: string, needed: string]): never {
  throw inputError('OPTION_MISSING', `${option} needs ${needed}`, {
    hint: `Add ${needed}, or remove ${option}.`,
  });
}

/**
 * Refuses the options of {@link withResults} that lack another one, files that cannot be written, and one
 * file for two reports.
 */
export function refuseBadResults(options: ResultOptions): void {
  refuseSharedFiles({ '--junit': options.junit, '--ctrf': options.ctrf, '--html': options.html });
  for (const file of [options.junit, options.ctrf, options.html])
    if (file !== undefined) requireWritable(file);
  if (options.compareTo !== undefined) return;
  if (options.failOnRegression) throwMissingOption(['--fail-on-regression', '--compare-to']);
  if (options.failOnCaseRegression) throwMissingOption(['--fail-on-case-regression', '--compare-to']);
}
