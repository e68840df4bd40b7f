import { Command } from '@commander-js/extra-typings';
import { type Abandoned, type AbandonParts, abandon, abandonCanceled } from '../../agent/abandon-batch.ts';
import { ServiceClaims } from '../../agent/claims.ts';
import { syncRun } from '../../agent/daemon/found-run.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import { type CanceledHere, canceledHere, chosenToResume, nameOf } from '../../api/resume.ts';
import { batchesNamed, serviceBatches } from '../../api/service-batches.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { fittingBatches, fittingRuns } from '../../ledger/find.ts';
import { daemonLock } from '../../ledger/queue.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { withService } from '../options.ts';
import type { CommonOptions } from '../settings.ts';

export function abandonCommand() {
  return withService(new Command('abandon'))
    .description(
      'end a batch that nobody will continue: its open trials are reported as void, and its results stay. Also a ' +
        'batch that is queued at the service and that no daemon has taken up',
    )
    .argument('<batch>', 'an id of a batch, of a set, or of a run that was canceled, or its beginning')
    .option('--unreported', 'end it on this machine only, for a service that no longer answers')
    .action(async (batch, options) => {
      process.exitCode = await abandonBatch(batch, options);
    });
}

interface AbandonOptions extends CommonOptions {
  unreported?: true | undefined;
}

async function abandonBatch(reference: string, options: AbandonOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { clock, out, config } = context;
  const { signal } = context.interruption({ doing: () => 'stopping; what has not ended stays open' });
  const reporting = await context.reporting();
  const { ledger, client, service } = reporting;
  const agent = ledger.agentId;
  const monotonic = () => performance.now();
  await using claims = new ServiceClaims({ client, clock, agent, monotonic, leaseMs: config.lease });
  const parts: AbandonParts = {
    ledger,
    client,
    claims,
    clock,
    service,
    unreported: options.unreported === true,
  };
  const all: (Abandoned & { name: string })[] = [];
  const canceled = canceledHere(ledger, service, reference) ?? (await takenUp(reference, parts, signal));
  if (canceled) all.push({ name: canceled.name, ...(await abandonCanceled(canceled.trials, parts, signal)) });
  for (const what of canceled ? [] : chosenToResume(ledger, service, reference)) {
    const name = nameOf(what);
    const ended = await abandon(what, parts, signal);
    if (!ended) throw atWork(name);
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
  if (options.json) out.json(all.map((one) => ({ ...one, unreported })));
  else out.print(stack(all.map(abandonedText)));
  if (unreported > 0) {
    const kept = plural(unreported, 'result');
    context.note(
      `the service does not show ${kept} of it yet: \`offsite data outbox\` lists, sends and drops them`,
    );
  }
  return left > 0 || (unreported > 0 && !parts.unreported) ? exitCodes.infrastructure : exitCodes.done;
}

/** Takes up what nobody has of a batch, or of a run, of the service, as if it had been canceled here. */
async function takenUp(
  name: string,
  { ledger, client, service, unreported }: AbandonParts,
  signal: AbortSignal,
): Promise<CanceledHere | undefined> {
  const { records, sets, foundRuns, queue } = ledger;
  const known = fittingBatches(records, name);
  const isOwn = known.some(({ plan }) => plan !== undefined) || fittingRuns(records, name).length > 0;
  if (isOwn || sets.find(name) || unreported) return undefined;
  const { cases } = await client.call('evals.cases.list', {}, { signal });
  const [first, other] = batchesNamed(await serviceBatches(client, cases, undefined, signal), name);
  if (!first || other) return undefined;
  const [batch, runs] = first;
  const named = runs.filter(({ id }) => id === name);
  for (const { id, case: { id: caseId } = { id: '' } } of named.length > 0 ? named : runs) {
    // Otherwise it is the daemon's of this data folder.
    if (foundRuns.find(service, batch, id) !== undefined) continue;
    const setup = { parts: 'setup', of: (run: { id: string }) => run.id === id } as const;
    for await (const record of client.runs({ caseId }, { signal, ...setup })) {
      if (record.id !== id) continue;
      await syncRun(record, caseId, { ledger, service, mayAdopt: true });
      break;
    }
    const open = queue.openTrials({ service, lock: daemonLock }, id).map(({ key }) => key);
    queue.withdraw(open, 'canceled');
  }
  const canceled = canceledHere(ledger, service, name);
  if (canceled || known.length > 0) return canceled;
  throw new OffsiteError(`batch ${batch} of the service has no queued trial`, {
    code: 'NOTHING_TO_RESUME',
    kind: 'input',
    hint: `\`offsite service runs ${batch}\` shows its trials.`,
  });
}

function abandonedText({
  name,
  voided,
  withdrawn,
  elsewhere,
  unknownStarts,
  unstarted,
}: Abandoned & { name: string }): Printable {
  const facts = [
    ...(voided > 0 ? [`${plural(voided, 'open trial')} ended as void`] : []),
    ...(withdrawn > 0 ? [`${plural(withdrawn, 'open trial')} ended, on this machine only`] : []),
    ...(elsewhere > 0 ? [`${plural(elsewhere, 'trial')} left to other agents, which run them`] : []),
    ...(unknownStarts > 0 ? ['the service lists no batch for a start whose answer was lost'] : []),
    ...(unstarted > 0 ? [`${unstarted} of its batches will not be started`] : []),
  ];
  return text`abandoned ${name}: ${ours(facts.join('; ') || 'no trial was open')}`;
}

function atWork(name: string): OffsiteError {
  return new OffsiteError(`another process works on ${name}`, {
    code: 'BATCH_AT_WORK',
    kind: 'input',
    hint: 'Stop it first (Ctrl-C, or `offsite daemon drain` for a daemon), then abandon the batch.',
  });
}
