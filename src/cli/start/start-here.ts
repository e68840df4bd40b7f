import { ConfigRevisions } from '../../agent/config-revision.ts';
import { platformDelivery } from '../../agent/executor/platform-delivery.ts';
import { turnForCommand } from '../../agent/executor/turn.ts';
import type { FinishedBatch } from '../../agent/finished-batch.ts';
import { pullSetups } from '../../agent/pull.ts';
import { runBatch } from '../../agent/run-batch.ts';
import { resolvePrompt, startBatch } from '../../agent/start-batch.ts';
import { OffsiteError } from '../../base/offsite-error.ts';
import type { StartResponse } from '../../contract/definition.ts';
import { platformService } from '../../ledger/platform.ts';
import type { Platform, PlatformTrials } from '../../service/platform.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { passedEnvironment } from '../../trial/host-environment.ts';
import { checkModels } from '../../trial/models.ts';
import type { CommandContext } from '../context.ts';
import type { Progress } from '../output/progress.ts';

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
  | { kind: 'finished'; batch: FinishedBatch }
  /** A server of this data folder, or the service, runs its trials; `next` says which. */
  | { kind: 'queued'; batch: StartResponse; next: string };

interface StartHere {
  context: CommandContext;
  progress: Progress;
  platform: PlatformTrials;
  concurrency: number | undefined;
  /** False to leave the trials to a server, even if none runs. */
  mayRun: boolean;
}

/**
 * Starts a batch at the embedded service. If no server of this data folder runs platform batches, this
 * process runs its trials, after other commands that do the same.
 */
export async function startHere(
  plan: SuitePlan,
  { context, progress, platform, concurrency, mayRun }: StartHere,
  signal: AbortSignal,
): Promise<Started> {
  const ledger = context.ledger();
  const { clock } = context;
  const waits = () =>
    progress.note('another command runs a platform batch in this data folder; waiting for it');
  using turn = mayRun ? await turnForCommand({ ledger, clock, waits }, signal) : undefined;
  if (!turn) {
    const { client } = await context.service();
    const prompt = await resolvePrompt(plan, client, signal);
    const parts = { client, ledger, clock, service: platformService };
    const { batch, lock } = await startBatch({ plan, prompt }, parts, signal);
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
  const workshop = await progress.step('connecting to the engine', () => context.workshop(signal));
  const sandboxes = plan.variants.map(({ sandbox }) => sandbox);
  const revision = await context.revision(workshop, { concurrency, sandboxes });
  await using revisions = new ConfigRevisions(revision);
  await checkModels(plan, revision.gateway);
  for (const sandbox of sandboxes) passedEnvironment(sandbox, context.host);
  context.noteLimits();
  progress.note(text`${plural(revision.concurrency, 'trial')} at a time; results in ${context.dataFolder}`);
  const delivery = platformDelivery(ledger, platform, clock);
  // Trials are not claimed: only this data folder runs its platform batches, and this process has the lock.
  const parts = { ...workshop, service: platformService, delivery, revisions, claims: undefined };
  try {
    return { kind: 'finished', batch: await runBatch(plan, parts, signal, progress.event) };
  } catch (error) {
    if (!(error instanceof OffsiteError) || error.kind !== 'input')
      progress.note('`offsite serve` continues what is not finished');
    throw error;
  }
}
