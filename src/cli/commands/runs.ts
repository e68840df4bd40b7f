import { Command } from '@commander-js/extra-typings';
import type { ListedRun } from '../../client/pages/run-parts.ts';
import { type Printable, stack, text } from '../../text/printable.ts';
import { percent, plural } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';
import { wholeNumber, withService } from '../options.ts';
import { askService } from '../with-client.ts';

export function runsCommand() {
  return withService(new Command('runs'))
    .description("list a case's runs, newest first, 20 to a page; --json adds what their trials measured")
    .argument('<case>', "the case's id")
    .option('--variant <variant>', 'only the runs of this variant: its id, or its model')
    .option('--page <n>', 'the page, from 1', wholeNumber, 1)
    .action((caseId, options) =>
      askService(
        options,
        (client, signal) =>
          client.page({ caseId, page: options.page, variant: options.variant }, { signal, parts: 'results' }),
        ({ runs, page, pageSize, total }) =>
          total === 0
            ? text`no runs of case ${caseId}`
            : stack([
                runsTable(runs),
                text`page ${page} of ${Math.ceil(total / pageSize)}, ${plural(total, 'run')}`,
              ]),
      ),
    );
}

function runsTable(runs: readonly ListedRun<'results'>[]): Printable {
  return table(
    [
      { title: 'run' },
      { title: 'batch' },
      { title: 'suite' },
      { title: 'variant' },
      { title: 'status' },
      { title: 'local' },
      { title: 'passed', align: 'right' },
      { title: 'failed', align: 'right' },
      { title: 'void', align: 'right' },
      { title: 'pass rate', align: 'right' },
      { title: 'started' },
    ],
    runs.map(({ id, batchId, suite, variant, status, local, distribution, startedAt }) => [
      id,
      batchId ?? '',
      suite?.id ?? '',
      [variant?.id, variant?.model, variant?.harness].filter(Boolean).join(' '),
      status ?? '',
      local ? 'local' : '',
      String(distribution?.passed ?? ''),
      String(distribution?.failed ?? ''),
      String(distribution?.voided ?? ''),
      percent(distribution?.passRate),
      startedAt ?? '',
    ]),
  );
}
