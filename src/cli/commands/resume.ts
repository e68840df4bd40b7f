import { Command } from '@commander-js/extra-typings';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import type { BatchEvent } from '../../agent/run-batch.ts';
import { planOfAny, resumeAny } from '../../agent/run-set.ts';
import { type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { chosenToResume, nameOf } from '../chosen-to-resume.ts';
import { CommandContext } from '../context.ts';
import { belowText, exitCodeOfRates, exitCodes } from '../exit-codes.ts';
import { Interrupted } from '../interruption.ts';
import { rate, wholeNumber, withService } from '../options.ts';
import { interruptedTable } from '../output/interrupted-table.ts';
import type { JunitBatch } from '../output/junit.ts';
import { type MergedSummary, mergedSummary } from '../output/merged-summary.ts';
import { openProgress } from '../output/progress.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import type { BatchSummary } from '../output/summary.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';
import { requirePlanned } from '../require-planned.ts';
import type { CommonOptions } from '../settings.ts';
import { writeText } from '../write-text.ts';

export function resumeCommand() {
  return withService(new Command('resume'))
    .description(
      'continue batches that were stopped: finished trials do not run again, and results are reported',
    )
    .argument('[batch]', 'an id of a batch or a set, or its beginning (default: all that are unfinished)')
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option(
      '--fail-under <rate>',
      'exit 1 when the pass rate of a batch or a set is below this (0 to 1)',
      rate,
    )
    .option('--junit <file>', 'also write the results as JUnit XML')
    .option(
      '--start-again',
      'start batches of a set again whose start got no answer, if the service lists none that fits',
    )
    .action(async (batch, options) => {
      process.exitCode = await resumeBatches(batch, options);
    });
}

interface ResumeOptions extends CommonOptions {
  concurrency?: number | undefined;
  failUnder?: number | undefined;
  junit?: string | undefined;
  startAgain?: true | undefined;
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
  const revision = await context.revision(workshop, { concurrency: options.concurrency });
  await using revisions = new ConfigRevisions(revision);
  const summaries: (BatchSummary | MergedSummary)[] = [];
  const batches = new Map<BatchSummary, BatchSummary[]>();
  let busy = 0;
  let left = 0;
  const wanted = chosenToResume(ledger, service, id);
  // Check all batches before the first one starts: trials without their model are void, even after retries.
  for (const what of wanted)
    await requirePlanned(nameOf(what), planOfAny(what, ledger), context.runners, revision);
  const how = { startsUnknown: options.startAgain === true };
  for (const what of wanted) {
    const begun: string[] = [];
    const observe = (event: BatchEvent) => {
      if (event.kind === 'started') begun.push(event.batchId);
      progress.event(event);
    };
    const working = resumeAny(what, how, { ...workshop, revisions }, signal, observe);
    const resumed = await working.catch((error) => {
      progress[Symbol.dispose]();
      const table = error instanceof Interrupted ? interruptedTable(begun, workshop) : undefined;
      if (table && !options.json) out.print(text`\n${table}\n`);
      throw error;
    });
    if (resumed.kind === 'finished') {
      const detailed = options.json === true;
      const [first, ...more] = resumed.batches.map((one) => finishedSummary(one, workshop, detailed));
      if (first) {
        const summary = what.kind === 'set' ? mergedSummary([first, ...more], what.set.id) : first;
        summaries.push(summary);
        batches.set(summary, [first, ...more]);
      }
      left += resumed.left.length;
      for (const part of resumed.left) progress.note(leftText(nameOf(what), part));
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
      out.print(text`\n${titleOf(summary)}\n${summaryTable(summary)}\n`);
      const see = seeWhy(batches.get(summary) ?? [], options.dataFolder);
      if (see) progress.note(see);
    }
  const unreported = summaries.reduce((sum, summary) => sum + summary.unreported, 0);
  if (unreported > 0) {
    progress.note(
      `${plural(unreported, 'result')} could not be reported and are kept in ${dataFolder}: offsite outbox`,
    );
  }
  if (options.junit !== undefined) {
    const { junitXml } = await import('../output/junit.ts');
    writeText(options.junit, junitXml(together(summaries), redact));
  }
  if (busy > 0 || left > 0) return exitCodes.infrastructure;
  for (const summary of summaries) {
    const below = belowText(summary, options.failUnder);
    if (below !== undefined) context.note(below);
  }
  const codes = summaries.map((summary) => exitCodeOfRates(summary, options.failUnder));
  return Math.max(exitCodes.done, ...codes);
}

function titleOf(summary: BatchSummary | MergedSummary): Printable {
  if (!('batchIds' in summary)) return text`batch ${summary.batchId}`;
  return text`${summary.set ?? summary.batchId}, ${String(summary.batchIds.length)} batches`;
}

/** All that was resumed, as one document. */
function together(summaries: readonly (BatchSummary | MergedSummary)[]): JunitBatch {
  const [first, ...more] = summaries;
  if (first && more.length === 0) return first;
  const sum = (of: 'passed' | 'failed' | 'void') => summaries.reduce((total, one) => total + one[of], 0);
  return {
    batchId: summaries.map((summary) => ('set' in summary ? summary.set : summary.batchId)).join(', '),
    ...{ passed: sum('passed'), failed: sum('failed'), void: sum('void') },
    runs: summaries.flatMap(({ runs }) => runs),
  };
}

function leftText(name: string, { number, why }: { number: number; why: 'unknown' | 'busy' }): Printable {
  if (why === 'busy') return text`another process works on batch ${number} of ${name}`;
  const unknown = text`it is unknown whether the service started batch ${number} of ${name}, and it lists none that fits`;
  return text`${unknown}: if \`offsite runs CASE\` does not show it, resume with --start-again`;
}
