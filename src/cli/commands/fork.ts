import { Command } from '@commander-js/extra-typings';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { runSet } from '../../agent/run-set.ts';
import { text } from '../../text/printable.ts';
import { passedEnvironment } from '../../trial/host-environment.ts';
import { checkModels } from '../../trial/models.ts';
import { CommandContext } from '../context.ts';
import { exitCodeOfRates } from '../exit-codes.ts';
import { forkedPlan } from '../forked-plan.ts';
import { numberFromZero, withService } from '../options.ts';
import { openProgress } from '../output/progress.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import { seeWhy, summaryTable } from '../output/summary-table.ts';
import type { CommonOptions } from '../settings.ts';

export function forkCommand() {
  return withService(new Command('fork'))
    .description('run a trial again with its recorded answers up to a request, then with another model')
    .argument('<trial>', 'case/variant#ordinal, or what `offsite run` printed for it')
    .requiredOption('--at <n>', 'how many of its requests get their recorded answers', numberFromZero)
    .requiredOption('--model <name>', 'the model of offsite.yaml that answers afterwards')
    .option('--harness <name>', 'another harness, which gets the recorded answers with their shell commands')
    .option('--profile <name>', 'with --harness: its profile of offsite.yaml (default: none)')
    .option('--report', 'report the result to the configured service; without this, it stays on this machine')
    .action(async (trial, options) => {
      process.exitCode = await fork(trial, options);
    });
}

interface ForkOptions extends CommonOptions {
  at: number;
  model: string;
  harness?: string | undefined;
  profile?: string | undefined;
  report?: true | undefined;
}

async function fork(reference: string, options: ForkOptions): Promise<number> {
  const { at, model, harness, profile, report } = options;
  await using context = CommandContext.open(options, { isLocal: report !== true });
  const { err, out, env, clock } = context;
  using progress = await openProgress({ err, env, clock, plain: options.json === true });
  context.note = progress.note;
  const { signal } = context.interruption();
  const { config, runners, host } = context;
  const parts = { ledger: context.ledger(), config, harnesses: runners, keys: host.keys };
  const plan = forkedPlan({ reference, at, model, harness, profile }, parts);
  const workshop = await progress.step('connecting to engine and service', () => context.workshop(signal));
  const sandboxes = plan.variants.map(({ sandbox }) => sandbox);
  const revision = await context.revision(workshop, { sandboxes });
  await using revisions = new ConfigRevisions(revision);
  await checkModels(plan, revision.gateway);
  for (const sandbox of sandboxes) passedEnvironment(sandbox, context.host);
  context.noteLimits();
  const { batches } = await runSet(plan, { ...workshop, revisions }, signal, progress.event);
  progress[Symbol.dispose]();
  const detail = options.json === true ? 'paths' : 'numbers';
  const [summary] = batches.map((one) => finishedSummary(one, workshop, detail));
  if (!summary) throw new Error('the fork finished without a batch');
  if (options.json) out.json(summary);
  else {
    out.print(text`\n${summaryTable(summary)}\n`);
    const see = seeWhy([summary], options.dataFolder);
    if (see) progress.note(see);
  }
  return exitCodeOfRates(summary, undefined);
}
