import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import type { Clock } from '../../base/clock.ts';
import { type Wire, wires } from '../../suite/model-config.ts';
import { exitCodes } from '../exit-codes.ts';
import { wholeNumber, withConfigAndData } from '../options.ts';
import type { Terminal } from '../terminal.ts';

export function modelsCheckCommand(clock: Clock, { out, err }: Terminal) {
  return withConfigAndData(new Command('check'))
    .description(
      'call a model for real, and print what it can do and what that means for offsite.yaml; exit 1 if it has a problem',
    )
    .argument('[name]', "the model's name, as `offsite models` shows it (default: the only one)")
    .option('--wire <wire>', "only one of the model's wires (default: its first, then all others)", wireName)
    .option('--quick', 'make only one minimal call')
    .option('--deep', 'measure by long prompts how much context it holds')
    .option('--up-to <tokens>', 'the longest prompt of --deep (default: its context window)', wholeNumber)
    .option('--timeout <seconds>', 'how long to wait for an answer (default: 120)', wholeNumber)
    .option('--json', 'print one JSON document on stdout')
    .action(async (name, options) => {
      // Read only now, so that the list of models comes fast.
      const { checkModel } = await import('../models/check-model.ts');
      const { checkReport } = await import('../models/check-report.ts');
      const checked = await checkModel(name, options, clock, { out, err });
      if (options.json) out.json(checked);
      else out.print(checkReport(checked));
      const { findings = [] } = checked.examined ?? {};
      if (findings.some(({ level }) => level === 'problem')) process.exitCode = exitCodes.belowThreshold;
    });
}

function wireName(text: string): Wire {
  const wire = wires.find((one) => one === text);
  if (!wire) throw new InvalidArgumentError(`expected one of ${wires.join(', ')}.`);
  return wire;
}
