import type { Clock } from '../../base/clock.ts';
import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import type {
  BudgetAccount,
  Gateway,
  GatewaySession,
  ModelAccount,
  ModelRole,
  SessionReplay,
} from '../../gateway/gateway.ts';
import type { Cassette, TrialLabel } from '../../gateway/replay/cassette.ts';
import { DerivedTrajectory } from '../../harness/derived-trajectory.ts';
import type { BlobStore } from '../../ledger/blobs.ts';
import type { Cause, PhaseName } from '../../record/cause.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import type { Config } from '../../suite/config-file.ts';
import type { Budget } from '../../suite/model-config.ts';
import type { PlannedReplay, PlannedVariant } from '../../suite/plan.ts';
import { noModel } from '../../suite/planned-variant.ts';
import { requirePrices } from '../../suite/require-prices.ts';
import { TrialFailure } from '../blame.ts';
import type { TrialSpec } from '../spec.ts';
import { FirstOffer } from './first-offer.ts';

/** What trials need for their models. All trials of a batch share it. */
export interface ModelParts {
  gateway: Gateway;
  blobs: BlobStore;
  clock: Clock;
  /** Opens a recording of the ledger. If not given, no trial is replayed. */
  cassette?: ((replay: PlannedReplay) => Cassette) | undefined;
  budgets: {
    trial: Budget;
    /** Default: the same as `trial`. */
    judges?: Budget | undefined;
    batch: BudgetAccount | undefined;
  };
}

/** The models of one attempt of a trial. */
export interface TrialModels extends AsyncDisposable {
  session: GatewaySession;
  /** The commands that the agent's model traffic shows. */
  derived: DerivedTrajectory;
  offer: FirstOffer;
}

/** Opens a trial's models. Undefined if the trial has no model and reaches no named host. */
export function openModels(
  spec: TrialSpec,
  { gateway, blobs, clock, budgets, cassette }: ModelParts,
): TrialModels | undefined {
  const models: Partial<Record<ModelRole, readonly string[]>> = {
    ...(spec.modelConfig && { agent: [spec.model] }),
    ...(spec.user && { user: [spec.user.model] }),
    ...(spec.judges.length > 0 && { judge: spec.judges }),
  };
  const hosts = hostsOf(spec.sandbox);
  if (Object.keys(models).length === 0 && hosts.length === 0) return undefined;
  const derived = new DerivedTrajectory();
  const offer = new FirstOffer(Object.keys({ ...spec.profile.mcpServers, ...spec.agent?.mcpServers }));
  const session = gateway.open({
    trial: `${spec.runId}/${spec.ordinal}`,
    clock,
    label: labelOf(spec),
    replay: spec.replay && sessionReplay(spec.replay, cassette),
    models,
    budget: budgets.trial,
    judgeBudget: budgets.judges,
    batchBudget: budgets.batch,
    hosts,
    keep: async (body) => (await blobs.put(body)).sha256,
    observe(exchange, request) {
      derived.add(exchange, request);
      offer.add(exchange, request);
    },
  });
  return { session, derived, offer, [Symbol.asyncDispose]: () => session[Symbol.asyncDispose]() };
}

function sessionReplay(replay: PlannedReplay, open: ModelParts['cassette']): SessionReplay {
  if (!open) throw new Error('a trial is replayed where no recording can be opened');
  const { live, fork } = replay;
  const inOrder = fork?.fromHarness !== undefined;
  return { cassette: open(replay), live, of: fork ? 'any' : 'same', inOrder };
}

function labelOf({ caseName, variant, ordinal }: TrialSpec): TrialLabel {
  return { case: caseName, variant, ordinal };
}

/** The hosts that the harness reaches by name. */
export function hostsOf({ network, hosts }: Pick<TrialSpec['sandbox'], 'network' | 'hosts'>): string[] {
  return network === 'allowlist' ? hosts : [];
}

/** The models of a batch, or of one trial. */
interface AskedModels {
  variants: readonly Pick<PlannedVariant, 'model' | 'modelConfig' | 'userModel'>[];
  judges: readonly string[];
  replay?: PlannedReplay | undefined;
}

/** The names of all models that are asked, each once. */
export function askedBy({ variants, judges }: AskedModels): string[] {
  const names = variants.flatMap(({ model, modelConfig, userModel }) => [
    // A fleet's worker may have lost the model since the trial was sent to it.
    ...(modelConfig || model !== noModel ? [model] : []),
    ...(userModel === undefined ? [] : [userModel]),
  ]);
  return [...new Set([...names, ...judges])];
}

/**
 * Throws an `input` error for a model that cannot be used, for example because its key is not set, or that
 * has no prices for a limit in USD. Call this before anything starts.
 */
export async function checkModels(
  asked: AskedModels,
  { gateway, config }: { gateway: Gateway; config: Config },
): Promise<void> {
  // A recording needs neither a configuration nor a key.
  if (asked.replay?.live === 'never') return;
  const agent = askedBy(asked);
  if (agent.length === 0) return;
  requirePrices(agent, config);
  const request = { trial: 'check', models: { agent }, budget: {}, hosts: [] };
  await using _session = gateway.open({
    ...request,
    keep: () => Promise.reject(new Error('nothing is asked')),
  });
}

/** Throws if a replayed model had no answer: whatever the harness did then says nothing about the agent. */
export function refuseMissed(session: GatewaySession | undefined): void {
  const cause = missedCause(session, 'harness');
  if (cause) throw new TrialFailure(cause);
}

/** The cause if a replayed model of a trial, such as a judge, had no answer. */
export function missedCause(session: GatewaySession | undefined, phase: PhaseName): Cause | undefined {
  if (!session?.replayMissed.aborted) return undefined;
  const { reason } = session.replayMissed;
  const hint = reason instanceof OffsiteError ? reason.hint : undefined;
  return { kind: 'replay', phase, message: [messageOf(reason), hint].filter(Boolean).join('. ') };
}

/** How many answers of a trial were recorded ones. Undefined if none was, and the trial is not a fork. */
export function replayOf(
  { exchanges }: Pick<ModelAccount, 'exchanges'>,
  planned: TrialSpec['replay'],
): TrialRecord['replay'] {
  const replayed = exchanges.flatMap((exchange) => exchange.replayed ?? []);
  const of = planned?.fork?.name ?? replayed[0]?.of;
  if (of === undefined) return undefined;
  const live = exchanges.filter((exchange) => exchange.responseBytes > 0 && !exchange.replayed).length;
  const changed = replayed.filter(({ how }) => how === 'conversation').length;
  return {
    of,
    answered: replayed.length,
    ...(planned?.fork && { forkedAt: planned.fork.at }),
    ...(planned?.fork?.fromHarness !== undefined && { fromHarness: planned.fork.fromHarness }),
    ...(changed > 0 && { changed }),
    ...(live > 0 && { live }),
  };
}
