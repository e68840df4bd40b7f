import { Command } from '@commander-js/extra-typings';
import { openBatch } from '../../agent/batch-run.ts';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import { ledgerCassette, type UnrecordedExchange } from '../../agent/ledger-cassette.ts';
import { runSet } from '../../agent/run-set.ts';
import { inputError, type OffsiteError } from '../../base/offsite-error.ts';
import type { RecordedExchange } from '../../gateway/replay/cassette.ts';
import { turnsInOrder } from '../../gateway/replay/turns-in-order.ts';
import { findTarget, labelOf } from '../../ledger/find-target.ts';
import { refuseForeign } from '../../ledger/foreign-batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { KnownKeys } from '../../redaction/redactor.ts';
import type { Config } from '../../suite/config-file.ts';
import type { PlannedVariant, SuitePlan } from '../../suite/plan.ts';
import { findModel, type HarnessOffer, plannedVariant, unknownModel } from '../../suite/planned-variant.ts';
import { plural } from '../../text/quantities.ts';
import { passedEnvironment } from '../../trial/prepare/environment.ts';
import { checkModels } from '../../trial/run/models.ts';
import { CommandContext } from '../context.ts';
import { numberFromZero, type OptionsOf, withService } from '../options.ts';
import { finishedSummary } from '../output/stored-batch.ts';
import { printResults, wantsDetails } from '../results/print-results.ts';
import { trialNeeded } from '../show/open-trial.ts';

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

type ForkOptions = OptionsOf<typeof forkCommand>;

async function fork(reference: string, options: ForkOptions): Promise<number> {
  const { at, model, harness, profile, report } = options;
  const suiteOf = ({ records }: Ledger) => findTarget(records, reference).batch.file;
  await using context = await CommandContext.openFor(options, suiteOf, { isLocal: report !== true });
  using progress = await context.progress(options);
  const { signal } = context.interruption();
  const { config, runners, host } = context;
  const parts = { ledger: context.ledger(), config, harnesses: runners, keys: host.keys };
  const plan = forkedPlan({ reference, at, model, harness, profile }, parts);
  const workshop = await progress.step('connecting to engine and service', () => context.workshop(signal));
  const sandboxes = plan.variants.map(({ sandbox }) => sandbox);
  const revision = await context.revision(workshop, { sandboxes });
  await using revisions = new ConfigRevisions(revision);
  await checkModels(plan, revision);
  for (const sandbox of sandboxes) passedEnvironment(sandbox, context.host);
  context.noteLimits();
  const { batches } = await runSet(plan, { ...workshop, revisions }, signal, progress.event);
  progress[Symbol.dispose]();
  const [summary] = batches.map((one) => finishedSummary(one, workshop, wantsDetails(options)));
  if (!summary) throw new Error('the fork finished without a batch');
  return printResults([{ summary, batches: [summary] }], { context, workshop, progress, options, signal });
}

interface Fork {
  /** The name of a trial, as findTarget reads it. */
  reference: string;
  /** How many requests of the trial get their recorded answers. */
  at: number;
  /** Who answers afterwards. */
  model: string;
  /** Another harness, and its profile. */
  harness?: string | undefined;
  profile?: string | undefined;
}

interface ForkParts {
  ledger: Ledger;
  config: Config;
  harnesses: readonly HarnessOffer[];
  keys: KnownKeys;
}

/**
 * The plan of one trial that begins like another one and continues with another model. Throws as
 * {@link findTarget}, {@link openBatch}, {@link variantWith} and {@link requireMapped} do, `MODEL_UNKNOWN`,
 * `OPTION_MISSING`, `NOT_RECORDED`, `FORK_TOO_LATE` and `FORK_UNPLANNED`.
 */
function forkedPlan(fork: Fork, { ledger, config, harnesses, keys }: ForkParts): SuitePlan {
  const { reference, at, model, harness, profile } = fork;
  if (profile !== undefined && harness === undefined)
    throw refused('OPTION_MISSING', '--profile needs --harness', 'Add --harness, or remove --profile.');
  const target = findTarget(ledger.records, reference);
  if (target.kind !== 'trial') throw trialNeeded(target, 'a fork begins with one trial');
  const { batch, run, trial } = target;
  refuseForeign(batch, 'forked');
  const shown = `${labelOf(run)}#${trial.ordinal}`;
  const modelConfig = findModel(model, config);
  if (!modelConfig)
    throw refused('MODEL_UNKNOWN', unknownModel(model, config), 'Name a model of offsite.yaml.');
  const { plan, runs } = openBatch(batch, ledger);
  const planned = runs.find(({ id }) => id === run.id);
  if (!planned)
    throw refused(
      'FORK_UNPLANNED',
      `${shown} of ${batch.id} was not planned on this machine`,
      'Fork a trial of a suite that `offsite run` ran.',
    );
  const { variant } = planned;
  const others = { config, harnesses, keys, meetsUser: planned.case.request.user !== undefined };
  const changed =
    harness === undefined
      ? { ...variant, name: `${variant.name}, then ${model}`, model, modelConfig }
      : variantWith({ variant, harness, profile, model }, others);
  if (at > 0) {
    const leftOut: UnrecordedExchange[] = [];
    const exchanges = recordedUpTo(ledger, batch, trial.key, { at, shown, leftOut });
    if (harness !== undefined) requireMapped(exchanges, leftOut, { at, shown });
  }
  const name = `${shown} of ${batch.id}, its first ${plural(at, 'request')}`;
  const forked = {
    trial: trial.key,
    name,
    at,
    ...(harness !== undefined && { fromHarness: variant.harness }),
  };
  return {
    ...plan,
    trials: 1,
    cases: [planned.case],
    variants: [changed],
    trigger: undefined,
    replay: { batch: batch.key, name, live: 'at-end', fork: forked },
  };
}

/** The first recorded exchanges of a trial. Throws if it has fewer. */
function recordedUpTo(
  ledger: Ledger,
  batch: { key: number; id: string },
  key: number,
  { at, shown, leftOut }: { at: number; shown: string; leftOut: UnrecordedExchange[] },
): RecordedExchange[] {
  const parts = { ledger, leftOut: (_: string, exchange: UnrecordedExchange) => leftOut.push(exchange) };
  const { trials } = ledgerCassette(parts, batch, key);
  const all = trials.flatMap((one) => one.exchanges());
  if (all.length === 0)
    throw refused(
      'NOT_RECORDED',
      `${shown} kept no exchanges with its model`,
      'Set `record: full` for the model in offsite.yaml, and run it again.',
    );
  const last = all.at(-1)?.number ?? 0;
  if (at > last)
    throw refused(
      'FORK_TOO_LATE',
      `${shown} has no request ${at}: its last one that can be replayed is ${last}`,
      `Choose --at from 0 to ${last}; \`offsite show ${shown} --model\` lists the requests.`,
    );
  return all.filter(({ number }) => number <= at);
}

function refused(code: string, message: string, hint: string): OffsiteError {
  return inputError(code, message, { hint });
}

interface Changed {
  /** The recorded one. Its sandbox is kept as it was. */
  variant: PlannedVariant;
  harness: string;
  profile: string | undefined;
  model: string;
}

interface VariantParts {
  config: Config;
  harnesses: readonly HarnessOffer[];
  keys: KnownKeys;
  meetsUser: boolean;
}

/** A variant with another harness. Throws `FORK_HARNESS` with all reasons why the harness cannot be used. */
function variantWith(
  { variant, harness, profile, model }: Changed,
  { config, ...parts }: VariantParts,
): PlannedVariant {
  const { name: sandbox, ...settings } = variant.sandbox;
  const obstacles: string[] = [];
  const source = {
    name: `${variant.name}, then ${model} with ${harness}`,
    harness,
    model,
    sandbox,
    ...(profile !== undefined && { profile }),
    ...(variant.userModel !== undefined && { userModel: variant.userModel }),
  };
  const within = { ...config, sandboxes: { ...config.sandboxes, [sandbox]: settings } };
  const planned = plannedVariant(source, { ...parts, config: within }, (_, message) =>
    obstacles.push(message),
  );
  if (planned && obstacles.length === 0) return planned;
  throw inputError('FORK_HARNESS', obstacles.join('; '), {
    hint: 'Choose another --harness, or give it a --profile of offsite.yaml that it can use.',
  });
}

/** Throws `FORK_UNMAPPED` if another harness cannot be given all recorded answers to an agent. */
function requireMapped(
  exchanges: readonly RecordedExchange[],
  leftOut: readonly UnrecordedExchange[],
  { at, shown }: { at: number; shown: string },
): void {
  // A failed request is no gap, because the harness repeated it.
  const missing = leftOut
    .filter(({ role, failure, number }) => role === 'agent' && failure === undefined && number <= at)
    .map(({ number, reason }) => ({ number, what: reason }));
  const { obstacle } = turnsInOrder(exchanges);
  const [first] = [...missing, ...(obstacle ? [obstacle] : [])].toSorted((a, b) => a.number - b.number);
  if (!first) return;
  const most = first.number - 1;
  throw inputError(
    'FORK_UNMAPPED',
    `another harness cannot be given the answer to request ${first.number} of ${shown}: ${first.what}`,
    {
      hint:
        `The largest --at for another harness is ${most}; ` +
        `\`offsite show ${shown} --model\` lists the requests.`,
    },
  );
}
