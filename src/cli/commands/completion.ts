import { Argument, Command } from '@commander-js/extra-typings';
import { ours } from '../../text/printable.ts';
import type { CommandTree } from '../command-tree.ts';
import { candidatesFor } from '../completion/candidates.ts';
import { machineValues } from '../completion/machine-values.ts';
import { completionScripts, shells } from '../completion/scripts.ts';
import { newName } from '../old-names.ts';
import { openTerminal } from '../terminal.ts';

export function completionCommand() {
  return new Command('completion')
    .description('print a script with which a shell completes commands, options and names')
    .addArgument(new Argument('<shell>', 'your shell').choices(shells))
    .action((shell) => openTerminal().out.print(ours(completionScripts[shell])));
}

/** The command that completion scripts call. It prints nothing that a shell takes for more than a word. */
export function completeCommand(commandTrees: () => Promise<readonly CommandTree[]>) {
  return new Command('complete')
    .description('print what may come next on a command line, for the scripts of `offsite completion`')
    .argument('<words...>', 'what is written after `offsite`; the last word may be empty')
    .action(async (words) => {
      const trees = await commandTrees();
      const found = await candidatesFor(renamed(words, trees), trees, machineValues(process.env));
      const lines =
        found.kind === 'files'
          ? ['files']
          : ['words', ...found.words.map(({ value, description }) => `${value}\t${oneLine(description)}`)];
      openTerminal().out.print(ours(lines.join('\n')));
    });
}

/** A line with a former name of a command, as if it had the new one. */
function renamed(words: readonly string[], trees: readonly CommandTree[]): readonly string[] {
  const name = trees.some((tree) => tree.name === words[0]) ? undefined : newName(words);
  return name === undefined ? words : [...name.split(' '), ...words.slice(1)];
}

/** A description on one line, in plain ASCII. Descriptions contain names from others, with any characters. */
function oneLine(description: string): string {
  return description.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, 100);
}
