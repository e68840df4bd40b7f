import { Command } from '@commander-js/extra-typings';
import { type Abandoned, type AbandonParts, abandon, abandonCanceled } from '../../agent/abandon-batch.ts';
import { ServiceClaims } from '../../agent/claims.ts';
import { syncRun } from '../../agent/daemon/found-run.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import {
  atWorkText,
  type CanceledHere,
  canceledHere,
  chosenToAbandon,
  lockOf,
  nameOf,
  suiteToResume,
} from '../../api/resume.ts';
import { batchesNamed, serviceBatches } from '../../api/service-batches.ts';
import { infrastructureError, inputError, messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type { ListedRun } from '../../client/pages/page-reader.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { isDataFolder, requireDataFolder } from '../../ledger/data-folder.ts';
import { fittingBatches, fittingRuns } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { daemonLock } from '../../ledger/queue.ts';
import { ours, type Printable, present, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { askDaemon } from '../daemon/ask-daemon.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OptionsOf, withService } from '../options.ts';

export function abandonCommand() {
  return withService(new Command('abandon'))
    .description(
      'end a batch that nobody will continue: its open trials are reported as void, and its results stay. Also a ' +
        'batch that is queued at the service and that no daemon has taken up',
    )
    .argument('<batch>', 'an id of a batch, of a set, or of a run, or its beginning')
    .option('--unreported', 'end it on this machine only, for a service that no longer answers')
    .action(async (batch, options) => {
      process.exitCode = await abandonBatch(batch, options);
    });
}

type AbandonOptions = OptionsOf<typeof abandonCommand>;

interface Parts extends AbandonParts {
  note(message: string): void;
}

async function abandonBatch(reference: string, options: AbandonOptions): Promise<number> {
  const suiteOf = (ledger: Ledger) => suiteToResume(ledger, reference);
  await using context = await CommandContext.openFor(options, suiteOf);
  const { clock, out, config } = context;
  const { signal } = context.interruption({ doing: () => 'stopping; what has not ended stays open' });
  if (!isDataFolder(context.dataFolder)) {
    const { client } = await context.service();
    // Without a data folder, only the service may have it. What is claimed there is kept in a new one.
    if (!(await named(reference, { client, note: context.note }, signal)))
      requireDataFolder(context.dataFolder);
    context.ledger({ creates: true });
  }
  const reporting = await context.reporting();
  const { ledger, client, service } = reporting;
  const agent = ledger.agentId;
  await using claims = new ServiceClaims({ client, clock, agent, leaseMs: config.lease });
  const parts: Parts = {
    ledger,
    client,
    claims,
    clock,
    service,
    unreported: options.unreported === true,
    letGo: (id) => letGo(ledger, id),
    note: context.note,
  };
  const all: (Abandoned & { name: string })[] = [];
  const canceled = await takenUp(reference, parts, signal);
  if (canceled) all.push({ name: canceled.name, ...(await abandonCanceled(canceled.trials, parts, signal)) });
  for (const { what, run } of canceled ? [] : chosenToAbandon(ledger, service, reference)) {
    const name = run ? `run ${run.id}` : nameOf(what);
    const ended = await abandon(what, parts, signal, run);
    if (!ended) throw atWork(name, lockOf(what), ledger);
    all.push({ name, ...ended });
  }
  // Removes the containers of the process that died.
  await context.enginesForTrials(signal).catch((error: unknown) => {
    signal.throwIfAborted();
    context.note(`what it left on the engine is removed later: ${messageOf(error)}`);
  });
  const ids = all.flatMap(({ batches }) => batches);
  const left = parts.unreported ? 0 : await deliverLeftovers(reporting, signal, context.note, ids);
  const pending = ledger.outbox.pending().filter((report) => report.service === service);
  const unreported = pending.filter(({ batchId }) => ids.includes(batchId)).length;
  // What is not reported yet looks open there.
  const isDoubtful = canceled !== undefined || all.some(({ elsewhere }) => elsewhere > 0);
  const isAsked = isDoubtful && left + unreported === 0 && !parts.unreported;
  const seen = isAsked ? await seenAt(canceled ? [canceled.id] : ids, parts, signal) : [];
  const goingOn = seen.filter((run) => openTrials(run) > 0);
  const open = goingOn.reduce((sum, run) => sum + openTrials(run), 0);
  if (options.json) out.json(all.map((one) => ({ ...one, open, unreported })));
  else out.print(stack(all.map((one) => abandonedText(one, open, seen.length > 0))));
  if (open > 0) {
    const runs = goingOn.map(({ id }) => id).join(', ');
    context.note(`to end them: \`offsite daemon cancel RUN\` at each daemon, then this again. Runs: ${runs}`);
  }
  if (unreported > 0) {
    const kept = plural(unreported, 'result');
    context.note(
      `the service does not show ${kept} of it yet: \`offsite data outbox\` lists, sends and drops them`,
    );
  }
  const isLeft = left + open > 0 || (unreported > 0 && !parts.unreported);
  return isLeft ? exitCodes.infrastructure : exitCodes.done;
}

/** The runs of a batch of the service, or the run, that a name means. Undefined unless it means just one. */
async function named(name: string, { client, note }: Pick<Parts, 'client' | 'note'>, signal: AbortSignal) {
  const { cases } = await client.call('evals.cases.list', {}, { signal });
  const found = await serviceBatches(client, cases, undefined, signal, name);
  const cut = found.casesCut + found.casesLeft;
  if (cut > 0) note(`of ${plural(cut, 'case')} at the service, not all runs were looked at`);
  const [first, other] = batchesNamed(found, name);
  if (!first || other) return undefined;
  const [batch, all] = first;
  const run = all.find(({ id }) => id === name);
  if (run) return { batch, runs: [run], id: run.id, kind: 'run' };
  return { batch, runs: all, id: batch, kind: 'batch' };
}

/** The runs of batches, or a run, as the service shows them now. */
async function seenAt(names: readonly string[], parts: Parts, signal: AbortSignal) {
  const runs: ListedRun<'results'>[] = [];
  for (const name of names) runs.push(...((await named(name, parts, signal))?.runs ?? []));
  return runs;
}

/** How many trials of a run are for daemons, and have no result. */
function openTrials({ local, status, distribution }: ListedRun<'results'>): number {
  const { trials = 0, scored = 0, voided = 0 } = distribution ?? {};
  return local === true && status !== 'canceled' ? trials - scored - voided : 0;
}

/** Has a running daemon let go of the runs that it found and that a name means. */
async function letGoOfFound(reference: string, { ledger, service, letGo }: AbandonParts): Promise<void> {
  const { records, queue } = ledger;
  const found = queue.openRuns({ service, lock: daemonLock }).filter(({ origin }) => origin === 'found');
  const ofBatch = new Set(found.map(({ batchId }) => batchId));
  const ofRun = new Set(found.map(({ runId }) => runId));
  const isFound = ({ id, plan }: StoredBatch) => plan === undefined && ofBatch.has(id);
  const batches = fittingBatches(records, reference).filter(isFound);
  const meant =
    batches.length > 0 ? batches : fittingRuns(records, reference).filter(({ id }) => ofRun.has(id));
  const [one, ...others] = meant;
  if (!one || others.length > 0) return;
  const lock = ledger.takeLock(daemonLock);
  lock?.[Symbol.dispose]();
  if (!lock) await letGo(one.id);
}

/** Takes up what nobody has of a batch, or of a run, of the service, as if it had been canceled here. */
async function takenUp(
  reference: string,
  parts: Parts,
  signal: AbortSignal,
): Promise<CanceledHere | undefined> {
  const { ledger, client, service, unreported } = parts;
  const { records, sets, batches, queue } = ledger;
  await letGoOfFound(reference, parts);
  const here = canceledHere(ledger, service, reference);
  const known = [
    ...fittingBatches(records, reference),
    ...fittingRuns(records, reference).map(({ batch }) => batches.byKey(batch)),
  ];
  if (unreported || sets.find(reference) || known.some(({ plan }) => plan !== undefined)) return here;
  const meant = await named(here?.id ?? reference, parts, signal);
  if (!meant) return here;
  const { id: name, kind, runs } = meant;
  const open = (id: string) => queue.openTrials({ service, lock: daemonLock }, id).map(({ key }) => key);
  for (const { id, case: { id: caseId } = { id: '' } } of runs) {
    // Otherwise the daemon of this data folder has it.
    if (open(id).length > 0) continue;
    const setup = { parts: 'setup', of: (run: { id: string }) => run.id === id } as const;
    for await (const record of client.runs({ caseId }, { signal, ...setup })) {
      if (record.id !== id) continue;
      const adopt = await syncRun(record, caseId, { ledger, service, mayAdopt: true });
      adopt();
      break;
    }
    queue.withdraw(open(id), 'canceled');
  }
  const canceled = canceledHere(ledger, service, name);
  if (canceled) return canceled;
  if (runs.some((run) => openTrials(run) > 0)) return { id: name, name: `${kind} ${name}`, trials: [] };
  throw inputError('NOTHING_TO_RESUME', `${kind} ${name} has no open trial for daemons at the service`, {
    hint: `\`offsite service runs ${meant.batch}\` shows its trials.`,
  });
}

function abandonedText(
  { name, voided, withdrawn, elsewhere, unknownStarts, unstarted }: Abandoned & { name: string },
  open: number,
  isSeen: boolean,
): Printable {
  const over = Math.max(0, elsewhere - open);
  const where = isSeen ? 'had ended elsewhere' : 'left to other agents';
  const facts = present([
    voided > 0 && `${plural(voided, 'open trial')} ended as void`,
    withdrawn > 0 && `${plural(withdrawn, 'open trial')} ended, on this machine only`,
    open > 0 && `${plural(open, 'trial')} claimed or running at daemons: they go on`,
    over > 0 && `${plural(over, 'trial')} ${where}`,
    unknownStarts > 0 && 'the service lists no batch for a start whose answer was lost',
    unstarted > 0 && `${unstarted} of its batches will not be started`,
  ]);
  const what = ours(facts.join('; ') || 'no trial was open');
  return open > 0 ? text`${name} is not ended: ${what}` : text`abandoned ${name}: ${what}`;
}

/** Has the daemon of the data folder cancel a batch or run, and waits until none of its trials runs. */
async function letGo(ledger: Ledger, id: string): Promise<void> {
  const answer = await askDaemon(ledger.dataFolder, 'POST', `/let-go/${encodeURIComponent(id)}`).catch(
    (error) => {
      // A command that works for the daemon has its lock and no socket.
      throw error instanceof OffsiteError && error.code === 'DAEMON_NOT_RUNNING'
        ? atWork(id, daemonLock, ledger)
        : error;
    },
  );
  if ((answer as { isFree: boolean }).isFree) return;
  throw infrastructureError(
    'BATCH_AT_WORK',
    `the daemon of this data folder is still ending trials of ${id}`,
    {
      hint: 'They are canceled, and do not run again. Abandon it once more when `offsite daemon status` lists none.',
    },
  );
}

function atWork(name: string, lock: string | undefined, ledger: Ledger): OffsiteError {
  return inputError('BATCH_AT_WORK', atWorkText(name, lock, ledger), {
    hint: 'Stop it first (Ctrl-C), then abandon the batch.',
  });
}
