import { shortId } from '../../ledger/find.ts';
import { shellWord } from '../../text/escape.ts';
import { table } from '../../text/fit.ts';
import { ours, type Printable, present, stack, styled, text, type Value } from '../../text/printable.ts';
import { cost, count, percent, plural, sumText, took } from '../../text/quantities.ts';
import { firstOf, wordsFor } from '../show/layout.ts';
import {
  type BatchSummary,
  type RunSummary,
  type Sums,
  sumsOfVariants,
  type TrialSummary,
} from './summary.ts';

/** The closing table. */
export function summaryTable(summary: BatchSummary): Printable {
  const trials = summary.runs.flatMap((run) => run.trials);
  const rows: Row[] = [
    ...summary.runs.map((run) => ({ ...run, name: text`${run.case} · ${run.variant}` })),
    ...sumsOfVariants(summary).map((sums) => ({ ...sums, name: text`all · ${sums.variant}` })),
    {
      ...summary,
      name: ours('all'),
      unfinished: summary.runs.flatMap(({ unfinished = [] }) => unfinished),
      harnessVersion: undefined,
      commands: summary.runs.reduce((sum, { commands }) => sum + commands, 0),
      trials,
    },
  ];
  const columns = tableColumns.filter(([, , where = () => true]) => rows.some(where));
  const shown = table(
    columns.map(([title]) => (title === 'run' || title === 'harness' ? title : { right: title })),
    rows.map((row) => columns.map(([, cell]) => cell(row))),
  );
  return stack([
    shown,
    ...stoppedLines(summary),
    ...mappedLines(trials),
    ...sameSandboxLines(summary),
    ...replayedLines(trials),
  ]);
}

type Row = Pick<RunSummary, 'commands' | 'harnessVersion' | 'trials' | 'unfinished'> &
  Sums &
  Pick<BatchSummary, 'elapsedMs' | 'elapsedIsAbout'> & { name: Printable };

/** A title, its cell, and for which row the column is needed; without that, it is always there. */
const tableColumns: [title: string, cell: (row: Row) => Value, where?: (row: Row) => boolean][] = [
  ['run', ({ name }) => name],
  ['passed', ({ passed }) => String(passed)],
  ['failed', ({ failed }) => (failed > 0 ? styled('red', failed) : '0')],
  ['void', (row) => (row.void > 0 ? styled('yellow', row.void) : '0')],
  // A pass rate says nothing about trials without a result.
  [
    'missing',
    ({ unfinished = [] }) => (unfinished.length > 0 ? styled('yellow', unfinished.length) : '0'),
    ({ unfinished = [] }) => unfinished.length > 0,
  ],
  ['pass rate', ({ passRate }) => percent(passRate)],
  ['time', (row) => (ranHere(row) ? timeOf(row) : '–')],
  ['commands', (row) => (ranHere(row) ? String(row.commands) : '–')],
  ['tokens', ({ trials }) => sumText(eachOf(trials, 'tokens'), count), ({ tokens }) => tokens !== 0],
  [
    'cost',
    ({ trials }) => sumText(eachOf(trials, 'costUsd'), cost),
    (row) => isPaid(row, 'costUsd') || isPaid(row, 'otherCostUsd'),
  ],
  // Of judges and simulated users.
  [
    'other cost',
    ({ trials }) => sumText(eachOf(trials, 'otherCostUsd'), cost),
    (row) => isPaid(row, 'otherCostUsd'),
  ],
  ['harness', ({ harnessVersion = '' }) => harnessVersion, (row) => row.harnessVersion !== undefined],
];

function eachOf(trials: Row['trials'], name: 'tokens' | 'costUsd' | 'otherCostUsd') {
  return trials.map((trial) => trial[name]);
}

export function isPaid({ trials }: Pick<Row, 'trials'>, name: 'costUsd' | 'otherCostUsd'): boolean {
  return eachOf(trials, name).some((cost = 0) => cost > 0);
}

/** A line for each variant that was stopped. */
function stoppedLines({ runs }: BatchSummary): Printable[] {
  const stopped = Map.groupBy(
    runs.filter(({ notRun }) => notRun > 0),
    ({ variant }) => variant,
  );
  return [...stopped].map(([variant, ofVariant]) => {
    const trials = ofVariant.reduce((sum, { notRun }) => sum + notRun, 0);
    const notRun = plural(trials, 'trial');
    return text`${variant} was stopped because its harness did not work: ${ours(notRun)} not run`;
  });
}

/** A line for each image that was used in place of another one. */
export function mappedLines(of: readonly Pick<TrialSummary, 'mappedImages'>[]): Printable[] {
  const mapped = of.flatMap(({ mappedImages = [] }) => mappedImages);
  const once = new Map(mapped.map((image) => [JSON.stringify(image), image]));
  return [...once.values()].map(
    ({ name, usedInstead }) => text`${usedInstead} was used in place of the image ${name}`,
  );
}

/** Says that recorded answers took the place of models, so that nobody takes the results for live ones. */
export function replayedLines(trials: readonly TrialSummary[]): Printable[] {
  const replays = trials.flatMap(({ replay }) => replay ?? []);
  return [...Map.groupBy(replays, ({ of }) => of)].map(([of, all]) => {
    const sum = (one: 'answered' | 'live' | 'changed') =>
      all.reduce((total, each) => total + (each[one] ?? 0), 0);
    const changed = sum('changed');
    const facts = present([
      `${plural(sum('answered'), 'request')} of ${plural(all.length, 'trial')} got recorded answers`,
      sum('live') > 0 && `${sum('live')} were answered live`,
      changed > 0 && `in ${changed} the harness's own texts, tools or options have changed`,
    ]);
    return text`replayed from ${of}, not a live result: ${ours(facts.join('; '))}`;
  });
}

/** How many runs are listed with their changes, each on a line. */
const namedRuns = 10;

/**
 * The runs that were graded in their harness's sandbox, where a pass is less reliable. Sets of tasks have
 * many of them, so those without changes share a line.
 */
function sameSandboxLines({ runs }: BatchSummary): Value[] {
  const same = runs.flatMap((run) => {
    const trials = run.trials.filter(({ verifiedIn, validatedIn }) =>
      [verifiedIn, validatedIn].includes('same'),
    );
    const count = trials.reduce((sum, { systemChanges }) => sum + (systemChanges?.unexpected.count ?? 0), 0);
    return trials.length === 0 ? [] : [{ name: text`${run.case} · ${run.variant}`, count }];
  });
  const changed = same.filter(({ count }) => count > 0);
  const others = same.length - changed.length;
  const were = ours(others === 1 ? 'was' : 'were');
  const where = ours("graded in the harness's own sandbox");
  return present([
    ...firstOf(changed, namedRuns, ({ name, count }) => {
      return text`${name} was ${where}: ${plural(count, 'unexpected change')} there`;
    }),
    others > 0 && text`${plural(others, 'run')} ${were} ${where}, without unexpected changes there`,
  ]);
}

/** Whether anything is known of how its trials ran: of some, only the service had the result. */
function ranHere({ trials }: Row): boolean {
  return trials.length === 0 || trials.some(({ fromService }) => !fromService);
}

/** The sum over trials. Of a batch, the time that a person waited: its trials run at the same time. */
export function timeOf({
  elapsedMs,
  elapsedIsAbout,
  durationMs,
}: Pick<BatchSummary, 'durationMs' | 'elapsedMs' | 'elapsedIsAbout'>): string {
  const sum = took(durationMs);
  const waited = took(elapsedMs ?? durationMs, elapsedIsAbout);
  return waited === sum ? sum : `${waited} elapsed`;
}

/**
 * How to see why a trial did not pass; undefined if all passed.
 *
 * @param dataFolder if it was named on the command line
 */
export function seeWhy(
  batches: readonly BatchSummary[],
  dataFolder: string | undefined,
): Printable | undefined {
  const all = batches.flatMap(({ batchId, runs }) => runs.map((run) => ({ ...run, batchId })));
  for (const { batchId, case: caseId, variant, trials } of all) {
    const trial = trials.find(({ verdict }) => verdict !== 'passed');
    if (!trial) continue;
    const words = wordsFor({ caseId, variant, ordinal: trial.ordinal }, shortId(batchId));
    const folder = dataFolder === undefined ? '' : ` --data-folder ${shellWord(dataFolder)}`;
    return text`see why: offsite show ${words}${folder}`;
  }
  return undefined;
}
