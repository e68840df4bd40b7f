import { exitCodes } from '../../src/cli/exit-codes.ts';
import { code, page, table } from './markdown.ts';

const meanings: Record<keyof typeof exitCodes, string> = {
  done:
    'The command did what it was asked to. For `run`: every trial ended and was reported, ' +
    'whatever the verdicts.',
  belowThreshold:
    'The pass rate is below `--fail-under`. Or, compared with the batch of `--compare-to`, a variant is worse ' +
    '(`--fail-on-regression`), or a case that always passed always fails (`--fail-on-case-regression`). ' +
    'For `check`: a case is not as expected. For `models check`: a model has a problem.',
  badInput:
    'The command line, a file or the configuration is wrong. Nothing was started, and no report was written.',
  infrastructure:
    'A trial is void, a result was not reported, or the engine, the service or a model could not be used. ' +
    'With a gate of `--compare-to`: or no case could be compared. ' +
    'For `check`: or a case used up `--case-timeout`. ' +
    'If that happened before a batch started, no report was written.',
  interrupted: 'Ctrl-C or SIGTERM ended the command. `offsite resume` continues the batch.',
};

/** The page of the exit codes of all commands. */
export function exitCodesPage(): string {
  const rows = Object.entries(exitCodes).map(([name, number]) => [
    code(String(number)),
    meanings[name as keyof typeof exitCodes],
  ]);
  return page(
    'Exit codes',
    'All commands end with one of these. Once a batch has started, a command ends with 1 or 3 only after ' +
      'everything is written. If a trial is void and the pass rate is too low, the code is 3.',
    table(['code', 'meaning'], rows),
  );
}
