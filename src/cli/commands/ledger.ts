import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { queuedFiles } from '../../agent/daemon/ticket.ts';
import { reconcile } from '../../agent/reconcile.ts';
import { serviceName } from '../../api/service-access.ts';
import { systemClock } from '../../base/clock.ts';
import { inputError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { backUpLedger } from '../../ledger/back-up.ts';
import { type CheckedLedger, checkLedger } from '../../ledger/check.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { embeddedService, foreignService, platformService } from '../../ledger/platform.ts';
import { prunableRuns, pruneLedger } from '../../ledger/prune.ts';
import { serviceDatabase } from '../../service/service.ts';
import { noteCopy } from '../../service/store/stores.ts';
import type { Content } from '../../text/output.ts';
import { lines, present, stack, text } from '../../text/printable.ts';
import { plural, size } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { age, byteSize, insecureHttp, withConfigAndData } from '../options.ts';
import type { Terminal } from '../terminal.ts';

export function checkLedgerCommand() {
  return withConfigAndData(new Command('check'))
    .description('read everything and list what is damaged or missing; exit 3 if something is')
    .option('--json', 'print one JSON document on stdout')
    .action((options) =>
      withLedger(options, async ({ ledger, signal, out }) => {
        const found = await checkLedger(ledger, signal, [serviceDatabase]);
        if (options.json) out.json(found);
        else out.print(described(found));
        if (!isSound(found)) process.exitCode = exitCodes.infrastructure;
      }),
    );
}

export function backUpCommand() {
  return withConfigAndData(new Command('backup'))
    .description(
      'copy the record with all results to a new folder, while trials run; it can be used as a data folder',
    )
    .argument('<folder>', 'a folder that does not exist yet')
    .action((folder, options) =>
      withLedger(options, async ({ ledger, signal, out, err }) => {
        const queue = async () => queuedFiles(ledger.dataFolder);
        const beside = [{ name: serviceDatabase, noteCopy }];
        const backedUp = await backUpLedger(ledger, folder, signal, beside, queue);
        const hasService = backedUp.databases.includes(serviceDatabase);
        const ofService = hasService ? ", the service's data with its keys" : '';
        const { waiting } = backedUp;
        const ofQueue = waiting > 0 ? `, ${plural(waiting, 'suite')} that no daemon has started` : '';
        out.print(
          `${backedUp.folder}: the record${ofService}${ofQueue} and ${plural(backedUp.blobs, 'blob')}, ${size(backedUp.byteSize)}`,
        );
        const { damaged, missing } = backedUp;
        if (damaged.length + missing.length === 0) return;
        const are = missing.length === 1 ? 'is' : 'are';
        const lost = present([
          damaged.length > 0 && plural(damaged.length, 'damaged blob'),
          missing.length > 0 && `${plural(missing.length, 'blob')} that ${are} missing`,
        ]);
        err.print(`without ${lost.join(' and ')}: offsite data check`);
        process.exitCode = exitCodes.infrastructure;
      }),
    );
}

export function pruneCommand() {
  return withConfigAndData(new Command('prune'))
    .description(
      'remove old batches that are completely reported, or whose other results were dropped, once their service shows the rest; ' +
        'the others stay, and so does what a service of this folder has',
    )
    .requiredOption('--older-than <time>', 'how long ago the batches ended: 30d, 12h', age)
    .option('--dry-run', 'only count what would be removed; what the service has lost is queued all the same')
    .option('--unreported', 'without asking the service, if it no longer answers')
    .option('--json', 'print one JSON document on stdout')
    .addOption(insecureHttp())
    .action((options) =>
      withLedger(options, async ({ context, ledger, signal, out, err }) => {
        const now = systemClock.now();
        const dryRun = options.dryRun ?? false;
        const before = now - options.olderThan;
        const unasked = options.unreported
          ? new Map<string, string>()
          : await compareOld(context, before, signal);
        const except = [...unasked.keys()];
        const pruned = await pruneLedger(ledger, { before, now, dryRun, except }, signal);
        for (const [service, reason] of unasked)
          err.print(
            text`kept the old batches of ${service}: it cannot be asked whether it still has their results: ${lines(reason)}; --unreported removes them without asking`,
          );
        if (unasked.size > 0) process.exitCode = exitCodes.infrastructure;
        const what = [
          plural(pruned.batches, 'batch').replace(/batchs$/, 'batches'),
          plural(pruned.trials, 'trial'),
          `${plural(pruned.blobs, 'blob')} (${size(pruned.byteSize)})`,
        ];
        const line = `${dryRun ? 'would remove' : 'removed'} ${what.join(', ')}`;
        if (options.json) out.json(pruned);
        else out.print(line);
        if (pruned.young > 0)
          err.print(
            `kept ${plural(pruned.young, 'blob')} (${size(pruned.youngBytes)}) that nothing needs now: they are not a day ` +
              'old, and a trial that runs may need them. The first prune after that removes them',
          );
        const ofService = statSync(join(ledger.dataFolder, serviceDatabase), { throwIfNoEntry: false });
        if (ofService)
          err.print(
            `kept ${serviceDatabase} (${size(ofService.size)}): the batches of the embedded service stay, and nothing removes them`,
          );
        if (pruned.spared > 0)
          err.print(
            `kept ${plural(pruned.spared, 'blob')}: the ledger has no batch, so it may not be the one that they belong to`,
          );
      }),
    );
}

/**
 * Compares what a prune would remove with what the services have, because one that was restored from a backup
 * may have lost results since: these are queued, and stay. Resolves with the services that cannot be asked,
 * and why. Those of this folder need no question.
 */
async function compareOld(
  context: CommandContext,
  before: number,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const unasked = new Map<string, string>();
  for (const [service, runs] of prunableRuns(context.ledger(), before)) {
    if ([embeddedService, platformService, foreignService].includes(service)) continue;
    try {
      if (service !== serviceName(context)) throw notConfigured();
      const parts = { ...(await context.reporting()), note: context.note };
      await reconcile(runs, parts, signal, { open: false });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof OffsiteError)) throw error;
      unasked.set(service, messageOf(error));
    }
  }
  return unasked;
}

function notConfigured(): OffsiteError {
  const message = 'another one is configured here: name its configuration with --config, or set OFFSITE_URL';
  return inputError('SERVICE_NOT_CONFIGURED', message);
}

export function workspacesCommand() {
  return withConfigAndData(new Command('workspaces'))
    .description(
      'what trials left, kept for `offsite trial regrade`: say how much disk it takes, or remove the oldest; ' +
        'images of sandboxes are among those of `offsite engine images`',
    )
    .option('--free', 'remove all of it')
    .option('--budget <size>', 'remove the oldest until the others take no more than this', byteSize)
    .option('--json', 'print one JSON document on stdout')
    .action((options) =>
      withLedger(options, async ({ ledger, out }) => {
        const { workspaces } = ledger;
        const budget = options.free ? 0 : options.budget;
        const freed = budget === undefined ? { count: 0, bytes: 0 } : await workspaces.free(budget);
        if (budget !== undefined) await workspaces.removeLost(systemClock.now());
        const kept = workspaces.sum();
        if (options.json) return out.json({ freed, kept, folder: workspaces.folder });
        if (budget !== undefined)
          out.print(`removed ${plural(freed.count, 'workspace')}, ${size(freed.bytes)}`);
        out.print(`${plural(kept.count, 'workspace')} kept, ${size(kept.bytes)} in ${workspaces.folder}`);
        out.print('Images of sandboxes that are kept for this too: offsite engine images list');
      }),
    );
}

interface LedgerOptions {
  config?: string | undefined;
  dataFolder?: string | undefined;
  insecureHttp?: true | undefined;
}

async function withLedger(
  { config, dataFolder, insecureHttp }: LedgerOptions,
  work: (parts: Terminal & { context: CommandContext; ledger: Ledger; signal: AbortSignal }) => Promise<void>,
): Promise<void> {
  // Not `--dry-run`, which means a folder of its own to `offsite run`, and here what the folder holds.
  await using context = CommandContext.open({ config, dataFolder, insecureHttp });
  const { out, err } = context;
  const { signal } = context.interruption();
  await work({ context, ledger: context.ledger(), signal, out, err });
}

function isSound(found: CheckedLedger): boolean {
  const { database, beside, empty, damaged, missing, otherVerdicts, unknown, brokenWorkspaces } = found;
  const all = [damaged, missing, otherVerdicts, unknown, brokenWorkspaces];
  const isWhole = [database, ...beside.map(({ damage }) => damage)].every((damage) => damage === undefined);
  return isWhole && !empty && all.every(({ length }) => length === 0);
}

function described(found: CheckedLedger): Content {
  const databases = found.beside.flatMap(({ name, damage }) =>
    damage === undefined ? [] : [text`damaged: the database ${name}: ${lines(damage)}`],
  );
  if (found.database !== undefined) return stack([...databases, found.database]);
  const findings = [
    ...databases,
    ...found.damaged.map(({ what, sha256 }) => text`damaged: ${what} (blob ${sha256})`),
    ...found.missing.map(({ what, sha256 }) => text`missing: ${what} (blob ${sha256})`),
    ...found.otherVerdicts.map(
      ({ what, ledger, record }) =>
        text`another verdict: ${what} is ${ledger} here, and ${record} in its record`,
    ),
    ...found.unknown.map(({ what, why }) => text`not known here: the result of ${what}: ${why}`),
    ...found.brokenWorkspaces.map(({ what, sha256 }) => text`damaged or missing: ${what} (${sha256})`),
    found.empty &&
      text`this ledger has no batch, but there are blobs: it may not be the one that they belong to`,
  ];
  const archives = found.workspaces > 0 ? ` and ${plural(found.workspaces, 'workspace')}` : '';
  const beside = found.beside
    .map(({ name, damage }) => (damage === undefined ? `; ${name} is whole` : ''))
    .join('');
  const counted = `${plural(found.blobs, 'blob')}${archives} read, ${found.orphaned} blobs unused${beside}`;
  const advice =
    'A backup may have what is damaged or missing: copy its blobs/, or its database, over this one.';
  return stack([
    ...findings,
    isSound(found) ? text`the ledger is whole: ${counted}` : text`${counted}\n${advice}`,
  ]);
}
