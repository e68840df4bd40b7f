import { Command } from '@commander-js/extra-typings';
import { countBatches, type ListedBatch, listBatches, shortBatchIds, variantsOf } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { completeListings } from '../../ledger/listings.ts';
import { platformService } from '../../ledger/platform.ts';
import type { PartNumber } from '../../ledger/sets.ts';
import { batchMarks } from '../../record/batch-marks.ts';
import { commitText, type SuiteCommit } from '../../record/suite-commit.ts';
import { ours, type Printable, stack, styled, text } from '../../text/printable.ts';
import { cost, count, minute, took } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { wholeNumber, withConfigAndData } from '../options.ts';
import { type Column, listText, verdictColumns } from '../output/columns.ts';
import { printPaged } from '../output/pager.ts';

export function batchesCommand() {
  return withConfigAndData(new Command('batches'))
    .description('list the batches of the data folder, newest first; `offsite show BATCH` opens one')
    .option('-n, --number <n>', 'how many', wholeNumber, 10)
    .option('--json', 'print one JSON document on stdout')
    .option('--no-pager', 'print everything at once, even on a terminal')
    .action(async (options) => {
      await using context = CommandContext.open(options);
      const { out, env } = context;
      const ledger = context.ledger({ isChecked: false });
      const parts = ledger.sets.partNumbers();
      const listed = newestBatches(ledger, options.number).map((batch) => {
        return { ...batchRow(ledger, batch), set: parts.get(batch.key) };
      });
      if (options.json) return out.json(listed);
      const unstarted = unstartedLines(ledger);
      if (listed.length === 0 && unstarted.length > 0) return out.print(stack(unstarted));
      if (listed.length === 0)
        return out.print(
          text`the data folder ${context.dataFolder} has no batch yet: offsite run SUITE; \`offsite service runs\` lists those of the service`,
        );
      const all = countBatches(ledger.records);
      const more = all - listed.length;
      const rest = more > 0 ? [styled('dim', ours(`and ${more} more: offsite data batches -n ${all}`))] : [];
      const content = stack([
        batchesTable(listed, shortBatchIds(ledger.records), out.columns),
        ...rest,
        ...unstarted,
      ]);
      await printPaged(out, content, { env, wanted: options.pager });
    });
}

interface BatchRow {
  id: string;
  /** Which part of its set it is; absent if it belongs to none. */
  set: PartNumber | undefined;
  service: string;
  suite: string;
  /** Epoch milliseconds. */
  startedAt: number;
  state: 'open' | 'finished';
  /** Of the repository that the suite is in; absent if it is in none. */
  commit: SuiteCommit | undefined;
  variants: string[];
  passed: number;
  failed: number;
  void: number;
  /** Trials without a result. */
  left: number;
  /** Trials that do not count, because the service has other results of them; absent if there are none. */
  superseded?: number;
  /** Results that the service does not show yet; absent if there are none. */
  unreported?: number;
  /** What to know about it, such as that it replays, or that trials are left. */
  marks: string[];
  /** Passed of scored trials, 0 to 1; absent if no trial was scored. */
  passRate: number | undefined;
  /** Of the agent's models; absent unless it is known for each trial. */
  tokens: number | undefined;
  costUsd: number | undefined;
  /** Milliseconds: the sum over the trials. */
  durationMs: number;
  /** Milliseconds from the start of its first trial to its last result so far; absent before that. */
  elapsedMs: number | undefined;
  /** Whether it is only known by clocks that can be set. */
  elapsedIsAbout?: true;
}

function newestBatches(ledger: Ledger, newest: number): ListedBatch[] {
  const listed = listBatches(ledger.records, { newest });
  const unlisted = listed.filter((batch) => batch.unlisted > 0);
  if (unlisted.length === 0) return listed;
  for (const { key } of unlisted) completeListings(ledger, key);
  return listBatches(ledger.records, { newest });
}

function batchRow(ledger: Ledger, batch: ListedBatch): Omit<BatchRow, 'set'> {
  const { id, service, suite, startedAt, state, commit, passed, failed, unfinished } = batch;
  const { tokens, costUsd, durationMs, elapsed, superseded = 0, unreported = 0 } = batch;
  return {
    id,
    service,
    suite,
    startedAt,
    state,
    commit,
    variants: variantsOf(ledger.records, batch.key),
    passed,
    failed,
    void: batch.void,
    left: unfinished,
    ...(superseded > 0 && { superseded }),
    ...(unreported > 0 && { unreported }),
    marks: batchMarks({ ...batch, isRunning: ledger.isWorkedOn(batch) }),
    passRate: passed + failed === 0 ? undefined : passed / (passed + failed),
    tokens,
    costUsd,
    durationMs,
    elapsedMs: elapsed?.ms,
    ...(elapsed?.isAbout && { elapsedIsAbout: true as const }),
  };
}

/** How many characters of the variants a row shows. */
const variantCharacters = 30;

function batchesTable(
  batches: readonly BatchRow[],
  short: (id: string) => string,
  width: number | undefined,
): Printable {
  const columns: Column<BatchRow>[] = [
    { title: 'batch', cell: ({ id }) => text`${short(id)}` },
    { title: 'set', where: ({ set }) => set !== undefined, cell: placeText },
    { title: 'when', cell: ({ startedAt }) => minute(startedAt) },
    { title: 'run by', where: isPlatforms, cell: (batch) => (isPlatforms(batch) ? 'platform' : '') },
    { title: 'suite', shrinks: true, cell: ({ suite }) => suite },
    {
      title: 'commit',
      where: ({ commit }) => commit !== undefined,
      cell: ({ commit }) => (commit ? commitText(commit) : ''),
    },
    { title: 'variants', shrinks: true, cell: ({ variants }) => variantNames(variants) },
    ...verdictColumns,
    {
      title: 'tokens',
      right: true,
      where: ({ tokens }) => tokens !== 0,
      cell: ({ tokens }) => count(tokens),
    },
    {
      title: 'cost',
      right: true,
      where: ({ costUsd = 0 }) => costUsd > 0,
      cell: ({ costUsd }) => cost(costUsd),
    },
    {
      title: 'took',
      right: true,
      cell: ({ elapsedMs, elapsedIsAbout }) =>
        elapsedMs === undefined ? '–' : took(elapsedMs, elapsedIsAbout),
    },
    {
      title: 'note',
      shrinks: true,
      where: ({ marks }) => marks.length > 0,
      cell: ({ marks }) => marks.join('; '),
    },
  ];
  return listText(batches, columns, width);
}

function placeText({ set }: BatchRow): string {
  return set ? `${set.number} of ${set.of} of ${set.id}` : '';
}

/** A line for each set with parts that are not started. */
function unstartedLines({ sets }: Ledger): Printable[] {
  return sets.open().flatMap(({ key, id, suite, parts }) => {
    const left = sets.parts(key).filter(({ batch }) => !batch).length;
    if (left === 0) return [];
    return [text`${id} of ${suite}: ${left} of ${parts} batches not started: offsite resume ${id}`];
  });
}

function isPlatforms({ service }: BatchRow): boolean {
  return service === platformService;
}

function variantNames(variants: readonly string[]): string {
  const names = variants.join(', ');
  if (names.length <= variantCharacters) return names;
  const [first = ''] = variants;
  return `${first.slice(0, variantCharacters)} and ${variants.length - 1} more`;
}
