import { Command } from '@commander-js/extra-typings';
import { compareBatches } from '../../comparison/comparison.ts';
import { type Reference, readReference } from '../../comparison/side.ts';
import { lastBatch } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { hasRegression, regressionText } from '../compare-to.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { withConfigAndData } from '../options.ts';
import { comparisonText } from '../output/comparison.ts';

export function compareCommand() {
  return withConfigAndData(new Command('compare'))
    .description('compare two batches or variants on this machine: is one better, or is it noise?')
    .argument('<a>', 'the older one: BATCH, BATCH:VARIANT or BATCH+BATCH; ids may be cut short')
    .argument('[b]', 'the newer one (default: the last batch)')
    .option('--fail-on-regression', 'exit 1 if B is worse than A by more than noise')
    .option('--json', 'print one JSON document on stdout')
    .action(async (a, b, options) => {
      process.exitCode = await compare(a, b, options);
    });
}

async function compare(
  a: string,
  b: string | undefined,
  options: CommonOptions & { failOnRegression?: true | undefined },
): Promise<number> {
  await using context = CommandContext.open(options);
  const ledger = context.ledger();
  const compared = compareBatches(
    ledger,
    readReference(ledger, a),
    b === undefined ? lastReference(ledger) : readReference(ledger, b),
  );
  if (options.json) context.out.json(compared);
  else context.out.print(comparisonText(compared));
  if (!options.failOnRegression) return exitCodes.done;
  context.err.print(regressionText(compared, a));
  return hasRegression(compared) ? exitCodes.belowThreshold : exitCodes.done;
}

function lastReference(ledger: Ledger): Reference {
  const batch = lastBatch(ledger.records);
  return { name: batch.id, batches: [batch], variant: undefined };
}
