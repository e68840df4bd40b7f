import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import { addCase, type CaseOptions } from '../../setup/add-case.ts';
import { ours, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { interruption } from '../interruption.ts';
import { openTerminal } from '../terminal.ts';

export function caseCommand() {
  return new Command('case').description('make cases of a suite').addCommand(addCommand());
}

function addCommand() {
  const sources = ['commit', 'range', 'diff'];
  const one = (option: Option) => option.conflicts(sources.filter((name) => name !== option.attributeName()));
  return new Command('add')
    .description(
      'make a case of a change in the repository here: the state before it is the workspace, its tests grade, ' +
        'and the change is the solution',
    )
    .addOption(one(new Option('--commit <commit>', 'the change of this commit (default: HEAD)')))
    .addOption(one(new Option('--range <from..to>', 'the change of a range, such as main...my-branch')))
    .addOption(one(new Option('--diff <file>', "a diff, such as a pull request's")))
    .option('--base <commit>', 'with --diff: the commit that it applies to (default: HEAD)')
    .option('--suite <file>', 'the suite that gets the case (default: evals/suite.yaml)')
    .option('--id <id>', 'the id of the case (default: from the subject of the commit)', caseId)
    .option('--tests <glob...>', 'which files of the change are tests (default: by the usual names)')
    .option(
      '--test <command>',
      'the command that runs the tests (default: as the project before the change suggests)',
    )
    .option(
      '--prepare <script>',
      'gets the dependencies (default: as the project before the change suggests)',
    )
    .option(
      '--force',
      'replace the files of a case of this id, and allow a second case of the change with a free id',
    )
    .action(add);
}

/** An id of a case is also the name of its folder. */
function caseId(given: string): string {
  if (!/^[\w@+-][\w.@+-]{0,99}$/.test(given))
    throw new InvalidArgumentError('expected a name of letters, digits, dashes and dots.');
  return given;
}

async function add(options: CaseOptions): Promise<void> {
  const { out, err } = openTerminal();
  using interrupted = interruption((message) => err.print(message), { doing: () => 'stopping' });
  const { signal } = interrupted;
  const { id, file, change, test, mayRead, hasExample } = await addCase(options, {
    env: process.env,
    signal,
  });
  const { tests, rest } = change;
  out.print(
    stack([
      text`added the case ${id} to ${file}: ${plural(rest.files.length, 'file')} to solve it, graded by \`${test}\``,
      text`  tests that only grading sees: ${tests.files.join(', ') || 'none'}`,
      text`next:`,
      text`  write what the agent is asked, at TODO(offsite) in ${file}`,
      text`  offsite check ${file}    proves that the tests fail before the change, and pass after it`,
      !mayRead && ours(permission),
      hasExample &&
        text`the example case \`greeting\` is still in ${file}, with a model that answers it alone: remove both`,
    ]),
  );
}

const permission = `before that: let the suite use this repository, with a line in offsite.yaml beside it:
  allowOutside: [.]`;
