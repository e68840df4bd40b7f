import type { ListedRun } from '../../client/pages/run-parts.ts';
import { shortRunId } from '../../ledger/find.ts';
import { fittedRows } from '../../text/fit.ts';
import { ours, type Printable, styled, text, type Value } from '../../text/printable.ts';
import { minute, percent } from '../../text/quantities.ts';

/** A run of the service, with its variant's name if the ledger knows it. */
export interface NamedRun extends ListedRun<'results'> {
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
export function runsTable(
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
