import { Command } from '@commander-js/extra-typings';
import type { ListedRun } from '../../client/pages/run-parts.ts';
import { findBatchRun, shortBatchIds } from '../../ledger/find.ts';
import { stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { wholeNumber, withService } from '../options.ts';
import { runsTable } from '../output/runs-table.ts';

export function runsCommand() {
  return withService(new Command('runs'))
    .description("list a case's runs, newest first, 20 to a page; --json adds what their trials measured")
    .argument('<case>', "the case's id")
    .option('--variant <variant>', 'only the runs of this variant: its id at the service, or its model')
    .option('--page <n>', 'the page, from 1', wholeNumber, 1)
    .action(async (caseId, options) => {
      await using context = CommandContext.open(options);
      const { out } = context;
      const { signal } = context.interruption();
      const { client, name: service } = await context.service();
      const asked = { caseId, page: options.page, variant: options.variant };
      const page = await client.page(asked, { signal, parts: 'results' });
      const { records } = context.ledger();
      const named = page.runs.map((run: ListedRun<'results'>) => {
        const known = findBatchRun(records, { service, batchId: run.batchId ?? '', runId: run.id });
        // For a run that was found at the service, the ledger has only the service's id of the variant.
        return { ...run, variantName: known?.variantIndex === undefined ? undefined : known.variant };
      });
      if (options.json) return out.json({ ...page, runs: named });
      if (page.total === 0) return out.print(text`no runs of case ${caseId}`);
      out.print(
        stack([
          runsTable(named, { width: out.columns, short: shortBatchIds(records) }),
          text`page ${page.page} of ${Math.ceil(page.total / page.pageSize)}, ${plural(page.total, 'run')}`,
        ]),
      );
    });
}
