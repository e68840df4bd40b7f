import { writeFileSync } from 'node:fs';
import { Command } from '@commander-js/extra-typings';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { deliverLeftovers } from '../../agent/delivery.ts';
import { type FinishedBatch, runBatch } from '../../agent/run-batch.ts';
import { messageOf, OffsiteError } from '../../offsite-error.ts';
import { loadSuite } from '../../suite/load-suite.ts';
import { text } from '../../text/printable.ts';
import { passedEnvironment } from '../../trial/host-environment.ts';
import { checkModels } from '../../trial/models.ts';
import { CommandContext, type CommonOptions } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { rate, suiteOptions, wholeNumber, withAllowOutside, withService } from '../options.ts';
import { githubStep, tellGithub } from '../output/github.ts';
import { openProgress } from '../output/progress.ts';
import { plural } from '../output/quantities.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import type { BatchSummary } from '../output/summary.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';

export function runCommand() {
  return withAllowOutside(withService(new Command('run')))
    .description(
      'run a suite: every case on every variant, each trial in its own sandbox, each result reported',
    )
    .argument('<file>', 'the suite file (YAML)')
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option('--fail-under <rate>', 'exit 1 when the pass rate is below this (0 to 1)', rate)
    .option('--junit <file>', 'also write the results as JUnit XML')
    .option('--dry-run', 'test the suite with models that do nothing, and report nothing')
    .action(async (file, options) => {
      process.exitCode = await run(file, options);
    });
}

interface RunOptions extends CommonOptions {
  concurrency?: number | undefined;
  failUnder?: number | undefined;
  junit?: string | undefined;
  dryRun?: true | undefined;
  allowOutside?: string[] | undefined;
}

async function run(file: string, options: RunOptions): Promise<number> {
  await using context = CommandContext.open(options, { suite: file });
  const { config, env, dataFolder, host, clock, redact, out, err } = context;
  const plan = loadSuite(file, config, context.runners, suiteOptions(options, dataFolder, host));
  using progress = await openProgress({ err, plain: options.json === true });
  context.note = progress.note;
  const interrupted = context.interruption();
  const { signal } = interrupted;
  const workshop = await context.workshop(signal);
  const { service, ledger } = workshop;
  interrupted.noteCrashesIn({ dataFolder, redact, crashes: ledger.crashes });
  const sandboxes = plan.variants.map(({ sandbox }) => sandbox);
  const revision = await context.revision(workshop.engine, { concurrency: options.concurrency, sandboxes });
  await using revisions = new ConfigRevisions(revision);
  await checkModels(plan, revision.gateway);
  for (const { sandbox } of plan.variants) passedEnvironment(sandbox, host);
  progress.note(
    text`service: ${service}; ${plural(revision.concurrency, 'trial')} at a time; results in ${dataFolder}`,
  );

  let batch: FinishedBatch;
  try {
    batch = await runBatch(plan, { ...workshop, revisions }, signal, progress.event);
  } catch (error) {
    const kept = ledger.outbox.pending().filter((report) => report.service === service).length;
    const waiting = kept > 0 ? `${plural(kept, 'result')} kept in ${dataFolder}; ` : '';
    if (!options.dryRun) progress.note(`${waiting}\`offsite resume\` continues what is not finished`);
    throw error;
  }
  await deliverLeftovers(workshop, signal, progress.note, clock.now());
  progress[Symbol.dispose]();

  // The data folder of a dry run is gone afterwards, and so are the paths in the details.
  const detailed = options.json === true && !options.dryRun;
  const summary = finishedSummary(batch, workshop, detailed);
  if (options.json) out.json(summary);
  else out.print(text`\n${summaryTable(summary)}\n`);
  const see = options.dryRun ? undefined : seeWhy(summary, options.dataFolder);
  if (see && !options.json) progress.note(see);
  if (options.junit !== undefined) {
    const { junitXml } = await import('../output/junit.ts');
    writeText(options.junit, junitXml(summary, redact));
  }
  const step = githubStep(env);
  // With --json stdout is one document; annotations are read from stderr as well.
  if (step) tellGithub(step, summary, { output: options.json ? err : out, warn: progress.note, redact });
  if (summary.unreported > 0) {
    const unreported = plural(summary.unreported, 'result');
    progress.note(`${unreported} could not be reported and are kept in ${dataFolder}: offsite outbox`);
  }
  return exitCodeOf(summary, options.failUnder);
}

function writeText(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new OffsiteError(`cannot write ${file}: ${messageOf(error)}`, {
      code: 'FILE_NOT_WRITTEN',
      kind: 'input',
      hint: 'The results are still stored and reported; `offsite runs CASE` shows them.',
      cause: error,
    });
  }
}

function exitCodeOf(summary: BatchSummary, failUnder: number | undefined): number {
  if (summary.void > 0 || summary.unreported > 0) return exitCodes.infrastructure;
  if (failUnder !== undefined && (summary.passRate ?? 0) < failUnder) return exitCodes.belowThreshold;
  return exitCodes.done;
}
