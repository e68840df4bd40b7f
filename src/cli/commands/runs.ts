import { Command } from '@commander-js/extra-typings';
import type { ListedRun } from '../../client/pages/page-reader.ts';
import { findBatchRun, shortBatchIds, shortRunId } from '../../ledger/find.ts';
import { fittedRows } from '../../text/fit.ts';
import { ours, type Printable, stack, styled, text, type Value } from '../../text/printable.ts';
import { minute, percent, plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { wholeNumber, withService } from '../options.ts';

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
      if (page.total === 0)
        return out.print(text`no runs of case ${caseId}: offsite service cases lists the ids of cases`);
      out.print(
        stack([
          runsTable(named, { width: out.columns, short: shortBatchIds(records) }),
          text`page ${page.page} of ${Math.ceil(page.total / page.pageSize)}, ${plural(page.total, 'run')}`,
        ]),
      );
    });
}

/** A run of the service, with its variant's name if the ledger knows it. */
interface NamedRun extends ListedRun<'results'> {
  variantName: string | undefined;
}

/** The width, in cells, if the output is not a terminal. */
const unlimited = 1_000;

/** Terminals of fewer cells show the beginnings of ids. */
const narrow = 120;

/**
 * @param width of the terminal, in cells; undefined if the output is not a terminal
 * @param short the short id of a batch
 */
function runsTable(
  runs: readonly NamedRun[],
  { width = unlimited, short }: { width?: number | undefined; short: (batch: string) => string },
): Printable {
  const some = (has: (run: NamedRun) => boolean) => runs.some(has);
  const right = (title: string, cell: (run: NamedRun) => Value) => {
    return { title, align: 'right' as const, cell };
  };
  const shrinks = true;
  const isNarrow = width < narrow;
  const columns = [
    { title: 'when', cell: whenText },
    { title: 'suite', shrinks, cell: ({ suite }: NamedRun) => suite?.name ?? suite?.id ?? '' },
    { title: 'variant', shrinks, cell: variantText },
    ...(some(({ status }) => status !== 'completed')
      ? [{ title: 'status', cell: ({ status }: NamedRun) => status ?? '' }]
      : []),
    ...(some(({ local }) => !local)
      ? [{ title: 'run by', cell: ({ local }: NamedRun) => (local ? 'Offsite' : 'platform') }]
      : []),
    right('passed', passedText),
    ...(some(({ distribution }) => (distribution?.voided ?? 0) > 0)
      ? [right('void', ({ distribution }) => styled('yellow', distribution?.voided ?? 0))]
      : []),
    right('rate', ({ distribution }) => percent(distribution?.passRate)),
    { title: 'batch', cell: ({ batchId = '' }: NamedRun) => text`${isNarrow ? short(batchId) : batchId}` },
    { title: 'run', cell: ({ id }: NamedRun) => text`${isNarrow ? shortRunId(id) : id}` },
  ];
  const titles = columns.map(({ title }) => ours(title));
  const rows = runs.map((run) => columns.map(({ cell }) => cell(run)));
  return fittedRows(columns, [titles, ...rows], { width, lead: '' });
}

function whenText({ startedAt }: NamedRun): string {
  const at = Date.parse(startedAt ?? '');
  return Number.isNaN(at) ? '' : minute(at);
}

/** The name, or what identifies the variant at the service: `offsite service rerun` takes the id. */
function variantText({ variantName, variant }: NamedRun): string {
  return variantName ?? [variant?.id, variant?.model, variant?.harness].filter(Boolean).join(' ');
}

/** `3 of 4` scored trials. */
function passedText({ distribution }: NamedRun): Value {
  const { passed, scored } = distribution ?? {};
  if (passed === undefined) return '';
  const of = scored ?? passed + (distribution?.failed ?? 0);
  const shown = ours(`${passed} of ${of}`);
  return passed < of ? styled('red', shown) : shown;
}
