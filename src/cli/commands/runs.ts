import { Command } from '@commander-js/extra-typings';
import { batchesNamed, type ServiceBatch, serviceBatches } from '../../api/service-batches.ts';
import { inputError, type OffsiteError } from '../../base/offsite-error.ts';
import type { Client } from '../../client/client.ts';
import type { ListedRun } from '../../client/pages/page-reader.ts';
import { NotFound } from '../../client/refusal.ts';
import type { CaseEntry } from '../../contract/catalog.ts';
import type { RequestOf } from '../../contract/operations.ts';
import { hintOfFile, nameOfVariant, shortBatchIds, shortId } from '../../ledger/find.ts';
import { embeddedService } from '../../ledger/platform.ts';
import { nearest } from '../../text/nearest.ts';
import { ours, type Printable, stack, styled, text, type Value } from '../../text/printable.ts';
import { minute, percent, plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { wholeNumber, withService } from '../options.ts';
import { type Column, listText, verdictColumns } from '../output/columns.ts';

export function runsCommand() {
  return withService(new Command('runs'))
    .description(
      "list the service's newest batches with what has run of them, by whomever; or the runs of a case, newest " +
        'first, 20 to a page; --json adds what their trials measured',
    )
    .argument('[what]', 'the id of a case, a suite or a batch (default: all suites)')
    .option('--variant <variant>', "only a case's runs of this variant: its id at the service, or its model")
    .option('--page <n>', "the page of a case's runs, from 1", wholeNumber)
    .action(async (what, { page, variant, ...options }) => {
      await using context = CommandContext.open(options);
      const { signal } = context.interruption();
      const { client, name: service } = await context.service();
      const at = { context, client, service, signal, json: options.json === true };
      if (what !== undefined && (await printRuns({ caseId: what, page, variant }, at))) return;
      if (what === undefined && (page ?? variant) !== undefined)
        throw inputError('CASE_NEEDED', "--page and --variant are for a case's runs", {
          hint: 'Name the case: offsite service runs CASE',
        });
      await printBatches(what, at);
    });
}

interface At {
  context: CommandContext;
  client: Client;
  /** The service's name in the ledger. */
  service: string;
  signal: AbortSignal;
  json: boolean;
}

/** Prints a case's runs. Resolves with false if the service has none of a case with that id. */
async function printRuns(asked: RequestOf<'evals.runs.list'>, at: At): Promise<boolean> {
  const { context, client, signal, json } = at;
  const page = await client
    .page({ ...asked, page: asked.page ?? 1 }, { signal, parts: 'results' })
    .catch((error) => {
      if (error instanceof NotFound) return undefined;
      throw error;
    });
  if (page === undefined || (page.total === 0 && asked.variant === undefined)) return false;
  if (json) context.out.json({ ...page, runs: withNames(page.runs, at) });
  else if (page.total === 0)
    context.out.print(text`no runs of case ${asked.caseId} on ${asked.variant ?? ''}`);
  else {
    const pages = Math.ceil(page.total / page.pageSize);
    const counts = text`page ${page.page} of ${pages}, ${plural(page.total, 'run')}`;
    context.out.print(stack([runsTable(page.runs, at), counts]));
  }
  return true;
}

/** How many batches are listed. */
const listed = 10;

/** Prints the newest batches, also only those of a suite; or the runs of one batch. */
async function printBatches(what: string | undefined, at: At): Promise<void> {
  const { context, client, signal, json } = at;
  const { cases } = await client.call('evals.cases.list', {}, { signal });
  if (cases.some(({ id }) => id === what)) return context.out.print(text`no runs of case ${what ?? ''}`);
  const suite = cases.find((one) => one.suite?.id === what)?.suite?.id;
  const ofSuite = suite === undefined ? cases : cases.filter((one) => one.suite?.id === suite);
  const all = await serviceBatches(client, ofSuite, suite, signal, suite === undefined ? what : undefined);
  const { batches, casesLeft } = all;
  if (what !== undefined && suite === undefined) {
    const fitting = batchesNamed(all, what);
    const [[, ofBatch] = [], ...others] = fitting;
    const ids = fitting.map(([id]) => id);
    if (!ofBatch || others.length > 0) throw unknown(what, at, cases, ids);
    if (json) return context.out.json({ runs: withNames(ofBatch, at) });
    return context.out.print(runsTable(ofBatch, at, true));
  }
  const newest = batches.slice(0, listed);
  if (json) return context.out.json({ batches: newest });
  if (newest.length === 0)
    return context.out.print(text`${serviceText(at)} has no batch yet: offsite service start SUITE`);
  const more = casesLeft > 0 && text`without ${plural(casesLeft, 'more case')}: name a suite`;
  const hint = ours('one of them: offsite service runs BATCH; one case: offsite service runs CASE');
  const list = listText(newest, batchColumns, context.out.columns);
  context.out.print(stack([list, more, styled('dim', hint)]));
}

/** Which service was asked: without a configuration, it is another one than a person may mean. */
function serviceText({ context, service }: At): string {
  if (service !== embeddedService) return `the service ${service}`;
  return `no service is configured here, and the embedded one of ${context.dataFolder}`;
}

function unknown(
  what: string,
  at: At,
  cases: readonly CaseEntry[],
  fitting: readonly string[],
): OffsiteError {
  const suites = [...new Set(cases.flatMap(({ suite }) => suite?.id ?? []))];
  const near = nearest(what, [...suites, ...cases.map(({ id }) => id)]);
  const meant = near === undefined ? '' : `; did you mean "${near}"?`;
  const message =
    fitting.length > 1
      ? `${fitting.length} batches of the service begin with ${what}: ${fitting.slice(0, 10).join(', ')}`
      : `${serviceText(at)} has no case, suite or recent batch ${what}${meant}`;
  return inputError('RUNS_UNKNOWN', message, {
    hint:
      hintOfFile(what) ??
      (suites.length > 0 ? `It has the suites ${suites.slice(0, 10).join(', ')}. ` : '') +
        '`offsite service cases` lists its cases, `offsite service runs` its newest batches.',
  });
}

const batchColumns: readonly Column<ServiceBatch>[] = [
  { title: 'when', cell: ({ startedAt }) => (startedAt === undefined ? '' : minute(startedAt)) },
  { title: 'suite', shrinks: true, cell: ({ suite }) => suite },
  {
    title: 'run by',
    where: ({ isPlatforms }) => isPlatforms,
    cell: ({ isPlatforms }) => (isPlatforms ? 'platform' : 'Offsite'),
  },
  { title: 'cases', right: true, cell: ({ cases }) => String(cases) },
  { title: 'ended', right: true, cell: ({ ended, trials }) => `${ended} of ${trials}` },
  ...verdictColumns,
  { title: 'batch', cell: ({ id }) => id },
];

/** A run of the service, with its variant's name if the ledger knows it. */
interface NamedRun extends ListedRun<'results'> {
  variantName: string | undefined;
}

/** Terminals of fewer cells show the beginnings of ids. */
const narrow = 120;

/** For a run that was found at the service, the name is that of a planned run of its batch. */
function withNames(runs: readonly ListedRun<'results'>[], { context, service }: At): NamedRun[] {
  const records = context.ledgerIfAny()?.records;
  return runs.map((run) => {
    const of = { service, batchId: run.batchId ?? '', runId: run.id, variantId: run.variant?.id };
    return { ...run, variantName: records && nameOfVariant(records, of) };
  });
}

function runsTable(found: readonly ListedRun<'results'>[], at: At, ofBatch = false): Printable {
  const runs = withNames(found, at);
  const width = at.context.out.columns;
  const ledger = at.context.ledgerIfAny();
  const short = ledger ? shortBatchIds(ledger.records) : shortId;
  const isNarrow = width !== undefined && width < narrow;
  const columns: Column<NamedRun>[] = [
    { title: 'when', cell: whenText },
    { title: 'suite', shrinks: true, cell: ({ suite }) => suite?.name ?? suite?.id ?? '' },
    { title: 'case', shrinks: true, where: () => ofBatch, cell: (run) => run.case?.id ?? '' },
    { title: 'variant', shrinks: true, cell: variantText },
    { title: 'status', where: ({ status }) => status !== 'completed', cell: statusText },
    { title: 'run by', where: ({ local }) => !local, cell: ({ local }) => (local ? 'Offsite' : 'platform') },
    { title: 'passed', right: true, cell: passedText },
    {
      title: 'void',
      right: true,
      where: ({ distribution }) => (distribution?.voided ?? 0) > 0,
      cell: ({ distribution }) => styled('yellow', distribution?.voided ?? 0),
    },
    { title: 'rate', right: true, cell: ({ distribution }) => percent(distribution?.passRate) },
    { title: 'batch', cell: ({ batchId = '' }) => text`${isNarrow ? short(batchId) : batchId}` },
    { title: 'run', cell: ({ id }) => text`${isNarrow ? shortId(id) : id}` },
  ];
  return listText(runs, columns, width);
}

/** `running, 3 of 4 ended`. */
function statusText({ status = '', distribution }: NamedRun): string {
  const { trials, passed = 0, failed = 0, voided = 0 } = distribution ?? {};
  if (status === 'completed' || trials === undefined) return status;
  return `${status}, ${passed + failed + voided} of ${trials} ended`;
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
