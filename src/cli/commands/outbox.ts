import { writeFileSync } from 'node:fs';
import { Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { deliverLeftovers } from '../../agent/delivery.ts';
import { reconcileEarlier } from '../../agent/reconcile.ts';
import { platformSender } from '../../agent/sender.ts';
import { serviceName } from '../../api/service-access.ts';
import { inputError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { embeddedService, platformService } from '../../ledger/platform.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import { printableJson } from '../../text/escape.ts';
import { table } from '../../text/fit.ts';
import type { Printable } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { withConfigAndData, withService } from '../options.ts';
import type { CommonOptions } from '../settings.ts';
import { openTerminal } from '../terminal.ts';

export function outboxCommand() {
  const outbox = withConfigAndData(new Command('outbox'))
    .description(
      'results that the service does not show yet: list them, send them, or retry or drop refused ones',
    )
    .option('--json', 'print one JSON document on stdout')
    .action(list);
  const commands = [listCommand(), sendCommand(), retryCommand(), dropCommand(), exportCommand()];
  for (const command of commands) outbox.addCommand(command as unknown as Command);
  return outbox;
}

function listCommand() {
  return withConfigAndData(new Command('list'))
    .description(
      'list these results: `sent` ones were not seen at the service yet; it refused `parked` ones, which wait for you',
    )
    .option('--json', 'print one JSON document on stdout')
    .action(list);
}

function sendCommand() {
  return withService(new Command('send'))
    .description('send the results for the configured service; exit 3 if some are left')
    .action(send);
}

function retryCommand() {
  return withConfigAndData(new Command('retry'))
    .description(
      'queue parked results again, after you removed the reason for the refusal; without ids, all of them',
    )
    .argument('[id...]', 'ids, as `offsite data outbox` shows them', reportIds)
    .action((ids, options) =>
      withLedger(options, (ledger) => {
        const parked = ledger.outbox.pending().filter(({ report }) => report === 'parked');
        const chosen = ids.length > 0 ? ids : parked.map(({ key }) => key);
        for (const { key } of known(ledger, chosen))
          ledger.outbox.become(key, 'queued', { answer: 'queued again by hand' });
        openTerminal().err.print(
          chosen.length === 0
            ? 'no result is parked: nothing to queue again'
            : `queued ${plural(chosen.length, 'result')} again: \`offsite data outbox send\`, the next run or the daemon sends them`,
        );
      }),
    );
}

function dropCommand() {
  return withConfigAndData(new Command('drop'))
    .description(
      'drop results: they are never reported. What the trials found stays in the ledger, until a prune removes it',
    )
    .argument('<id...>', 'ids, as `offsite data outbox` shows them', reportIds)
    .option('--yes', 'confirm')
    .action((ids, options) =>
      withLedger(options, (ledger) => {
        const reports = known(ledger, ids);
        if (!options.yes) {
          throw inputError(
            'CONFIRMATION_MISSING',
            `${plural(reports.length, 'result')} would never be reported`,
            { hint: 'Add --yes to confirm; `offsite data outbox export` saves them first.' },
          );
        }
        for (const { key } of reports) ledger.outbox.drop(key);
        openTerminal().err.print(`dropped ${plural(reports.length, 'result')}`);
      }),
    );
}

function exportCommand() {
  return withConfigAndData(new Command('export'))
    .description('write the unreported results, with their reports, as JSON; to stdout if the file is -')
    .argument('<file>', 'a file that does not exist yet, or -')
    .action((file, options) =>
      withLedger(options, (ledger) => {
        const reports = ledger.outbox.pending().map((report) => {
          return { id: report.key, ...documentOf(report), report: ledger.outbox.body(report.key) };
        });
        const { out, err } = openTerminal();
        if (file === '-') out.json(reports);
        else writeNew(file, `${printableJson(JSON.stringify(reports, null, 2))}\n`);
        err.print(`exported ${plural(reports.length, 'result')}`);
      }),
    );
}

function list(options: CommonOptions): Promise<void> {
  return withLedger(options, (ledger) => print(ledger.outbox.pending(), options.json));
}

async function send(options: CommonOptions): Promise<void> {
  await using context = CommandContext.open(options);
  const { signal } = context.interruption();
  const { note } = context;
  const { outbox } = context.ledger();
  const name = serviceName(context);
  const others = outbox.pending().filter((report) => !isFor(name, report));
  if (outbox.pending().length === others.length && outbox.runs(name, 'shown').length === 0) {
    if (others.length > 0) throw forOthers(others, name);
    return print([], options.json);
  }
  const reporting = await context.reporting();
  const { ledger, service, clock } = reporting;
  const again = await reconcileEarlier(service, { ...reporting, note }, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    return { error };
  });
  await deliverLeftovers(reporting, signal, note);
  const { platform } = await context.service();
  if (platform) {
    const sender = platformSender(ledger, platform);
    await deliverLeftovers({ ledger, clock, sender, service: platformService }, signal, note);
  }
  const left = ledger.outbox.pending();
  print(left, options.json);
  if (others.length > 0) note(forOthers(others, name).message);
  // Without the service's records, nobody knows whether it has what it accepted.
  if (typeof again === 'object') throw again.error;
  if (left.length > 0 || again > 0) process.exitCode = exitCodes.infrastructure;
}

/** The embedded service of this process takes platform batches too. */
function isFor(name: string, { service }: StoredTrial): boolean {
  return service === name || (name === embeddedService && service === platformService);
}

/** The error about results that are not for the configured service. */
function forOthers(others: readonly StoredTrial[], name: string): OffsiteError {
  const services = [...new Set(others.map(({ service }) => service))].map(placeOf);
  const are = `${plural(others.length, 'result')} ${others.length === 1 ? 'is' : 'are'}`;
  return inputError(
    'RESULTS_FOR_ANOTHER_SERVICE',
    `${are} for ${services.join(' and ')}, and here ${placeOf(name)} is configured: not sent`,
    { hint: 'Name the configuration of that service with --config, or set OFFSITE_URL and OFFSITE_API_KEY.' },
  );
}

function placeOf(service: string): string {
  return service === embeddedService || service === platformService
    ? 'the embedded service'
    : `the service ${service}`;
}

async function withLedger(options: CommonOptions, work: (ledger: Ledger) => void): Promise<void> {
  await using context = CommandContext.open(options);
  work(context.ledger());
}

function print(pending: readonly StoredTrial[], json: boolean | undefined): void {
  const { out } = openTerminal();
  if (json) out.json(pending.map(documentOf));
  else if (pending.length === 0) out.print('nothing waits to be reported');
  else out.print(pendingTable(pending));
}

function documentOf({ key: trial, report: state, ...of }: StoredTrial) {
  const { service, batchId, runId, run, origin, caseId, ordinal } = of;
  const { sent, tries, nextAt, since, answer, lease, refused } = of;
  const report = { state, sent, tries, nextAt, since, answer, lease, refused };
  return { trial, service, batchId, runId, run, origin, caseId, ordinal, ...report };
}

function pendingTable(pending: readonly StoredTrial[]): Printable {
  const rows = pending.map(({ key, service, runId, ordinal, report: state = '', tries, answer }) => [
    String(key),
    service,
    `${runId} #${ordinal}`,
    state,
    String(tries),
    (answer ?? (state === 'sent' ? 'not seen at the service yet' : '')).replaceAll('\n', ' '),
  ]);
  return table(['id', 'service', 'trial', 'state', 'tries', 'last answer'], rows);
}

/** The reports with these ids. Throws an `input` error if one of them is not in the outbox. */
function known(ledger: Ledger, ids: readonly number[]): StoredTrial[] {
  const pending = new Map(ledger.outbox.pending().map((report) => [report.key, report]));
  return ids.map((id) => {
    const report = pending.get(id);
    if (report) return report;
    throw inputError('REPORT_UNKNOWN', `no result ${id} waits to be reported`, {
      hint: '`offsite data outbox` lists the ids of those that do.',
    });
  });
}

/** Parses ids for commander, which passes them one after another. */
function reportIds(text: string, before: number[] | undefined): number[] {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('expected an id, a whole number from 1.');
  return [...(before ?? []), Number(text)];
}

function writeNew(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    throw inputError('FILE_NOT_WRITTEN', `cannot write ${file}: ${messageOf(error)}`, {
      hint: 'Name a file that does not exist yet, in a folder that you can write to.',
      cause: error,
    });
  }
}
