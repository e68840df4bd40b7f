import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command } from '@commander-js/extra-typings';
import { ours, stack, text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { makeBaseImage } from '../make-base-image.ts';
import { openTerminal } from '../terminal.ts';
import { runCommand } from './run.ts';

export function quickstartCommand() {
  return new Command('quickstart')
    .description(
      'make the base image if it is missing, then run the example suite, which needs no model and no key',
    )
    .argument('[options...]', 'options of `offsite run`')
    .passThroughOptions()
    .allowUnknownOption()
    .action(async (options, _, command) => {
      const suite = exampleSuite();
      await makeBaseImage(CommandContext.open({}, { suite }));
      await runCommand()
        .copyInheritedSettings(command)
        .parseAsync([suite, ...options], { from: 'user' });
      if (process.exitCode !== exitCodes.done) return;
      const { err } = openTerminal();
      err.print(
        stack([
          text`\nThe suite that ran is ${suite}.`,
          ours(`next:
  offsite show      says why trials failed
  offsite view      shows everything in the browser
  offsite init      writes a first suite of your own into this folder`),
        ]),
      );
    });
}

/** The suite's path: the package has it beside `dist`, a checkout beside `src`. */
function exampleSuite(): string {
  const name = 'examples/quickstart/suite.yaml';
  const paths = [`../../../${name}`, `../../../../${name}`].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  );
  const found = paths.find((path) => existsSync(path));
  if (found === undefined) throw new Error(`this installation lacks ${name}`);
  return found;
}
