import { Command, Option } from '@commander-js/extra-typings';
import { baseImageRecipes } from '../../base-image/recipe.ts';
import { lines, text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { makeBaseImage } from '../make-base-image.ts';
import { openTerminal } from '../terminal.ts';

export function baseImageCommand() {
  return new Command('base-image')
    .description(
      'make the image offsite/base on the engine, or on each of several, if it is missing: from an ' +
        'image of Node that a registry has, or from Debian packages',
    )
    .addOption(
      new Option('--python <version>', 'the version of Python in it; 3.13 makes offsite/base:python3.13')
        .choices(Object.keys(baseImageRecipes) as (keyof typeof baseImageRecipes)[])
        .default('3.11' as const),
    )
    .option('--force', 'build it again')
    .option('--config <file>', 'the configuration')
    .action(async ({ force = false, python, ...options }) => {
      const recipe = baseImageRecipes[python];
      const { made, away } = await makeBaseImage(CommandContext.open(options), { force, recipe });
      const { out, err } = openTerminal();
      for (const { alias, name, built, id, engine } of made) {
        const on = engine === undefined ? text`` : text` on ${engine}`;
        out.print(text`${alias} = ${name} (${built})${on}: ${id}`);
      }
      for (const { name, error } of away) err.print(text`${name}: ${lines(error.message)}`);
      if (away.length > 0) process.exitCode = exitCodes.infrastructure;
    });
}
