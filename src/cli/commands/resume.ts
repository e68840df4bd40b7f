import { Command } from '@commander-js/extra-typings';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import { planOf, type Resumable, resumable, resume } from '../../agent/resume-batch.ts';
import { fittingBatches, onlyId } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { platformService } from '../../ledger/platform.ts';
import { OffsiteError } from '../../offsite-error.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { wholeNumber, withService } from '../options.ts';
import { openProgress } from '../output/progress.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import type { BatchSummary } from '../output/summary.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';
import { requirePlanned } from '../require-planned.ts';

export function resumeCommand() {
  return withService(new Command('resume'))
    .description(
      'continue batches that were stopped: finished trials do not run again, and results are reported',
    )
    .argument('[batch]', "a batch's id, or its beginning (default: all unfinished batches)")
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .action(async (batch, options) => {
      process.exitCode = await resumeBatches(batch, options);
    });
}

interface ResumeOptions extends CommonOptions {
  concurrency?: number | undefined;
}

async function resumeBatches(id: string | undefined, options: ResumeOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { dataFolder, env, clock, redact, out, err } = context;
  using progress = await openProgress({ err, env, clock, plain: options.json === true });
  context.note = progress.note;
  const interrupted = context.interruption();
  const { signal } = interrupted;
  const workshop = await progress.step('connecting to engine and service', () => context.workshop(signal));
  const { ledger, service } = workshop;
  interrupted.noteCrashesIn({ dataFolder, redact, crashes: ledger.crashes });
  // Batches may use other sandboxes than are configured now, but those are the best guess at their sizes.
  const revision = await context.revision(workshop.engine, { concurrency: options.concurrency });
  await using revisions = new ConfigRevisions(revision);
  const summaries: BatchSummary[] = [];
  let busy = 0;
  const wanted = chosen(ledger, service, id);
  // Check all batches before the first one starts: trials without their model are void, even after retries.
  for (const what of wanted)
    await requirePlanned(nameOf(what), planOf(what, ledger), context.runners, revision);
  for (const what of wanted) {
    const resumed = await resume(what, { ...workshop, revisions }, signal, progress.event);
    if (resumed.kind === 'finished') {
      summaries.push(finishedSummary(resumed.batch, workshop, options.json === true));
    } else if (resumed.kind === 'busy') {
      busy++;
      progress.note(text`another process works on ${nameOf(what)}`);
    } else {
      progress.note(text`the service has not started ${nameOf(what)}: run the suite again`);
    }
  }
  await progress.step('delivering results of earlier runs', () =>
    deliverLeftovers(workshop, signal, progress.note, clock.now()),
  );
  progress[Symbol.dispose]();

  if (options.json) out.json(summaries);
  else if (summaries.length === 0) out.print('nothing to resume');
  else
    for (const summary of summaries) {
      out.print(text`\nbatch ${summary.batchId}\n${summaryTable(summary)}\n`);
      const see = seeWhy([summary], options.dataFolder);
      if (see) progress.note(see);
    }
  const unreported = summaries.reduce((sum, summary) => sum + summary.unreported, 0);
  if (unreported > 0) {
    progress.note(
      `${plural(unreported, 'result')} could not be reported and are kept in ${dataFolder}: offsite outbox`,
    );
  }
  const isVoid = summaries.some((summary) => summary.void > 0);
  return isVoid || unreported > 0 || busy > 0 ? exitCodes.infrastructure : exitCodes.done;
}

/** The batches to resume. Throws an `input` error for a batch that cannot be resumed. */
function chosen(ledger: Ledger, service: string, reference: string | undefined): Resumable[] {
  const open = resumable(ledger, service);
  if (reference === undefined) {
    if (open.length === 0) refuseElsewhere(ledger, service);
    return open;
  }
  const found = fittingBatches(ledger.records, reference);
  const id = onlyId(found, reference);
  const named = open.filter((one) => one.kind === 'batch' && one.batch.id === id);
  if (named.length > 0) return named;
  const elsewhere = found.find((batch) => batch.service !== service);
  if (elsewhere?.service === platformService) throw platformsBatch(`batch ${id} is a platform batch`);
  const [message, hint] =
    found.length === 0
      ? [`this machine has no batch ${id}`, 'Without an id, all unfinished batches are resumed.']
      : elsewhere
        ? [`batch ${id} is of the service ${elsewhere.service}, not of ${service}`, 'Configure that service.']
        : [`batch ${id} is finished`, '`offsite outbox` shows whether all of it is reported.'];
  throw new OffsiteError(message, { code: 'NOTHING_TO_RESUME', kind: 'input', hint });
}

/**
 * Throws if all unfinished batches belong to other services. Without a configuration, a command uses the
 * embedded service, which knows no batch of another service.
 */
function refuseElsewhere(ledger: Ledger, service: string): void {
  const all = [...ledger.batches.open(), ...ledger.starts.open()];
  const elsewhere = [...new Set(all.map((one) => one.service))].filter((name) => name !== service);
  if (elsewhere.length === 0) return;
  if (elsewhere.every((name) => name === platformService))
    throw platformsBatch('the unfinished batches are platform batches');
  const others = `the unfinished batches belong to ${elsewhere.join(', ')}`;
  throw new OffsiteError(`nothing to resume at the service ${service}; ${others}`, {
    code: 'NOTHING_TO_RESUME',
    kind: 'input',
    hint: "Name the batch's configuration (--config, OFFSITE_CONFIG) or its service (OFFSITE_URL).",
  });
}

function platformsBatch(message: string): OffsiteError {
  return new OffsiteError(message, {
    code: 'NOTHING_TO_RESUME',
    kind: 'input',
    hint: '`offsite serve` with this data folder continues platform batches.',
  });
}

function nameOf(what: Resumable): string {
  return what.kind === 'batch' ? `batch ${what.batch.id}` : `a batch of ${what.start.suite}`;
}
