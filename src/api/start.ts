import { isDeepStrictEqual } from 'node:util';
import type { OpenBatch } from '../agent/batch-run.ts';
import { turnForCommand } from '../agent/executor/turn.ts';
import { type BatchEvent, runBatch } from '../agent/run-batch.ts';
import { platformSender } from '../agent/sender.ts';
import { pullSetups, startBatch, withPrompt } from '../agent/start-batch.ts';
import { inputError, OffsiteError } from '../base/offsite-error.ts';
import type { Client } from '../client/client.ts';
import { Conflict } from '../client/refusal.ts';
import { limits, type StartResponse } from '../contract/definition.ts';
import { platformService } from '../ledger/platform.ts';
import type { Platform, PlatformTrials } from '../service/platform.ts';
import { BadFile, type FileIssue } from '../suite/file-issues.ts';
import { type PlannedVariant, type SuitePlan, startRequest } from '../suite/plan.ts';
import { text } from '../text/printable.ts';
import { plural } from '../text/quantities.ts';
import type { Context } from './context.ts';
import { type Observer, withVariants } from './plan-suite.ts';
import { readyRun } from './run.ts';

/**
 * Accepts what this process starts: `offsite service start` has checked its suite, and keeps the plan in the
 * ledger, which the process that runs the trials reads.
 */
export const checkedHere: Platform = {
  refusal: () => Promise.resolve(undefined),
  queued: () => undefined,
};

export type Started =
  /** This process has run its trials. */
  | { kind: 'finished'; batch: OpenBatch }
  /** A server of this data folder, or the service, runs its trials; `next` says which. */
  | { kind: 'queued'; batch: StartResponse; next: string };

interface StartHere {
  context: Context;
  platform: PlatformTrials;
  concurrency: number | undefined;
  /** False to leave the trials to a server, even if none runs. */
  mayRun: boolean;
}

interface Watched {
  progress: Observer;
  observe(event: BatchEvent): void;
  signal: AbortSignal;
}

/**
 * Starts a batch at the embedded service. If no server of this data folder runs platform batches, this
 * process runs its trials, after other commands that do the same.
 */
export async function startHere(
  plan: SuitePlan,
  { context, platform, concurrency, mayRun }: StartHere,
  { progress, observe, signal }: Watched,
): Promise<Started> {
  const ledger = context.ledger();
  const { clock } = context;
  const waits = () =>
    progress.note('another command runs a platform batch in this data folder; waiting for it');
  using turn = mayRun ? await turnForCommand({ ledger, clock, waits }, signal) : undefined;
  if (!turn) {
    const { client } = await context.service();
    const parts = { client, ledger, clock, service: platformService };
    const { batch, lock } = await startBatch(await withPrompt(plan, client, signal), parts, signal);
    lock.remove();
    await pullSetups(batch, { client, ledger }, signal);
    const runs = batch.runs.map(({ id, case: { request }, variant }) => {
      return { id, caseId: request.id, variantIndex: plan.variants.indexOf(variant) };
    });
    const next = mayRun
      ? 'the running `offsite serve` of this data folder runs it; `offsite show` shows its results'
      : 'the next `offsite serve` of this data folder runs it';
    return { kind: 'queued', batch: { id: batch.id, runs }, next };
  }
  await using ready = await readyRun(context, plan, { concurrency }, { progress, signal });
  progress.note(text`${plural(ready.concurrency, 'trial')} at a time; results in ${context.dataFolder}`);
  const sender = platformSender(ledger, platform);
  // Trials are not claimed: only this data folder runs its platform batches, and this process has the lock.
  const parts = { ...ready.parts, service: platformService, sender, claims: undefined };
  try {
    return { kind: 'finished', batch: await runBatch(plan, parts, signal, observe) };
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.kind !== 'input')
      progress.note('`offsite serve` continues what is not finished');
    throw error;
  }
}

interface StartThere {
  client: Client;
  uncarried: FileIssue[];
  dropLocal: boolean;
  /** Whether daemons run its trials. */
  forDaemons: boolean;
}

/**
 * Starts a batch at a service that runs its trials itself, or whose daemons do. The service gets the request,
 * and nothing else. Throws {@link BadFile} if that leaves out something that the suite asks for, unless
 * `dropLocal` is set.
 */
export async function startThere(
  plan: SuitePlan,
  { client, uncarried, dropLocal, forDaemons }: StartThere,
  signal: AbortSignal,
): Promise<Started> {
  if (!dropLocal && uncarried.length > 0) {
    const remedy =
      'remove it, or start with --drop-local to leave it out' +
      (forDaemons ? '' : ', or with --for-daemons if daemons run it');
    throw new BadFile(uncarried.map((issue) => ({ ...issue, message: `${issue.message}; ${remedy}` })));
  }
  const by = forDaemons ? 'local' : 'platform';
  const request = startRequest(await withPrompt(plan, client, signal), by);
  const batch = await client.call('evals.start', request, { signal }).catch((error: unknown) => {
    if (forDaemons || !(error instanceof Conflict)) throw error;
    const { message, code, cause } = error;
    const hint = 'Queue it for daemons of the service with --for-daemons, if it has any.';
    throw inputError(code, message, { hint, cause });
  });
  const runner = forDaemons
    ? `daemons with ${plan.suite.id} in daemon.suites run it; until one does, it stays queued at ${client.origin}`
    : `${client.origin} runs it`;
  return { kind: 'queued', batch, next: `${runner}; \`offsite service runs ${batch.id}\` shows its results` };
}

/**
 * A plan with other numbers of trials, or only some of its variants. Throws an `input` error for an unknown
 * name, and for a choice after which the service would take one variant for another.
 */
export function chosenPlan(
  plan: SuitePlan,
  { trials = plan.trials, variant: names }: { trials?: number | undefined; variant?: string[] | undefined },
): SuitePlan {
  if (trials > limits.trials) {
    throw inputError('TRIALS_TOO_MANY', `--trials takes at most ${limits.trials}`, {
      hint: '`offsite service rerun` adds further trials to a cell of a batch.',
    });
  }
  const { variants } = withVariants(plan, names);
  for (const variant of variants) refuseMistaken(variant, plan.variants, variants);
  return { ...plan, trials, variants };
}

/**
 * Throws if the service would take the variant for another one. A request has the model and the connections
 * of a variant, but for example not its profile. So a service tells variants with the same model and
 * connections apart by their order in the request.
 */
function refuseMistaken(
  variant: PlannedVariant,
  all: readonly PlannedVariant[],
  chosen: readonly PlannedVariant[],
): void {
  const before = all
    .slice(0, all.indexOf(variant))
    .find((one) => isAlike(one, variant) && !chosen.includes(one));
  if (!before) return;
  throw inputError(
    'VARIANT_MISTAKEN',
    `the service would take the variant ${variant.name} for ${before.name}: a request has the same for both`,
    { hint: `Start ${before.name} too, or move ${variant.name} to a suite of its own.` },
  );
}

function isAlike(one: PlannedVariant, other: PlannedVariant): boolean {
  return one.model === other.model && isDeepStrictEqual(one.credentials, other.credentials);
}
