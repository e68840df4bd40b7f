import { Command } from '@commander-js/extra-typings';
import { type Abandoned, type AbandonParts, abandon, abandonCanceled } from '../../agent/abandon-batch.ts';
import { ServiceClaims } from '../../agent/claims.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import { canceledHere, chosenToResume, nameOf } from '../../api/resume.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { withService } from '../options.ts';
import type { CommonOptions } from '../settings.ts';

export function abandonCommand() {
  return withService(new Command('abandon'))
    .description(
      'end a batch that nobody will continue: its open trials are reported as void, and its results stay',
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
  const canceled = canceledHere(ledger, service, reference);
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
