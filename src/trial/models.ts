import type { BudgetAccount, Gateway, GatewaySession, ModelRole } from '../gateway/gateway.ts';
import { DerivedTrajectory } from '../harness/derived-trajectory.ts';
import type { BlobStore } from '../ledger/blobs.ts';
import type { Budget } from '../suite/model-config.ts';
import type { PlannedVariant } from '../suite/plan.ts';
import type { TrialSpec } from './spec.ts';

/** What trials need for their models; the same for all of a batch. */
export interface ModelParts {
  gateway: Gateway;
  blobs: BlobStore;
  budgets: {
    trial: Budget;
    /** As `trial` where left out. */
    judges?: Budget | undefined;
    batch: BudgetAccount | undefined;
  };
}

/** The models of one attempt of a trial. */
export interface TrialModels {
  session: GatewaySession;
  /** The commands as the agent's model traffic shows them. */
  derived: DerivedTrajectory;
}

/** Opens the models of a trial; undefined where it has none and reaches no named host. */
export function openModels(
  spec: TrialSpec,
  { gateway, blobs, budgets }: ModelParts,
): TrialModels | undefined {
  const models: Partial<Record<ModelRole, readonly string[]>> = {
    ...(spec.modelConfig && { agent: [spec.model] }),
    ...(spec.user && { user: [spec.user.model] }),
    ...(spec.judges.length > 0 && { judge: spec.judges }),
  };
  const hosts = spec.sandbox.network === 'allowlist' ? spec.sandbox.hosts : [];
  if (Object.keys(models).length === 0 && hosts.length === 0) return undefined;
  const derived = new DerivedTrajectory();
  const session = gateway.open({
    trial: `${spec.runId}/${spec.ordinal}`,
    models,
    budget: budgets.trial,
    judgeBudget: budgets.judges,
    batchBudget: budgets.batch,
    hosts,
    keep: async (body) => (await blobs.put(body)).sha256,
    observe: (exchange, request) => derived.add(exchange, request),
  });
  return { session, derived };
}

/** The models of a batch, or of one trial. */
interface AskedModels {
  variants: readonly Pick<PlannedVariant, 'model' | 'modelConfig' | 'userModel'>[];
  judges: readonly string[];
}

/**
 * Throws an `input` error, before anything is started, for a model that cannot be asked: its key is not set,
 * say.
 */
export async function checkModels({ variants, judges }: AskedModels, gateway: Gateway): Promise<void> {
  const names = variants.flatMap(({ model, modelConfig, userModel }) => [
    ...(modelConfig ? [model] : []),
    ...(userModel === undefined ? [] : [userModel]),
  ]);
  const agent = [...new Set([...names, ...judges])];
  if (agent.length === 0) return;
  const request = { trial: 'check', models: { agent }, budget: {}, hosts: [] };
  await using _session = gateway.open({
    ...request,
    keep: () => Promise.reject(new Error('nothing is asked')),
  });
}
