import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { modelsCommand } from '../../../src/cli/commands/models.ts';
import { printFailure } from '../../../src/cli/failure.ts';
import { Interrupted } from '../../../src/cli/interruption.ts';
import { Output } from '../../../src/text/output.ts';
import type { Place } from '../place.ts';

export interface Printed {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Runs `offsite models …` in this process, where nobody sits at a terminal, with a place's configuration. */
export async function modelsIn(place: Place, args: string[], clock: Clock = systemClock): Promise<Printed> {
  const printed: string[] = [];
  const failure: string[] = [];
  const out = new Output({ write: (characters) => printed.push(characters) });
  const err = new Output({ write: (characters) => failure.push(characters) });
  const file = `${place.folder}/project/offsite.yaml`;
  let exitCode = 0;
  try {
    const config = ['--config', file, '--data-folder', place.dataFolder];
    await modelsCommand(clock, { out, err }).parseAsync([...args, ...config], { from: 'user' });
    exitCode = Number(process.exitCode ?? 0);
  } catch (error) {
    exitCode = error instanceof Interrupted ? 130 : printFailure(error, err);
  }
  // The command ends in this process, which is the tests'.
  process.exitCode = undefined;
  return { exitCode, stdout: printed.join(''), stderr: failure.join('') };
}
