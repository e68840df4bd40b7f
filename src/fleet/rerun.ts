import type { OpenBatch, Run } from '../agent/batch-run.ts';
import type { Client } from '../client/client.ts';
import { fleetLock } from '../ledger/fleet-tasks.ts';
import { PollHandle } from './batch-handle.ts';
import { type FleetStart, startWorkflow } from './start-fleet-batch.ts';

/** A case on a variant whose newest run has trials without a verdict. */
export interface VoidCell {
  planned: Run;
  /** The service's id of the variant. */
  variantId: string;
  /** How many. */
  trials: number;
}

/**
 * The cells of a batch whose newest run has void trials, by what the service says. `open` counts trials of
 * newest runs that have no result yet: they are not rerun, because they may still run.
 */
export async function voidCells(
  batch: OpenBatch,
  client: Client,
  signal: AbortSignal,
): Promise<{ cells: VoidCell[]; open: number }> {
  const known = new Map(batch.runs.map((run) => [run.id, run]));
  const newest = new Map<string, { variantId: string; trials: { status: string }[]; planned?: Run }>();
  for (const caseId of new Set(batch.runs.map((run) => run.caseId))) {
    for await (const { id, batchId, variant, trials = [] } of client.runs({ caseId }, { signal })) {
      if (variant === undefined || (batchId !== batch.id && !known.has(id))) continue;
      const name = JSON.stringify([caseId, variant.id]);
      const cell = newest.get(name) ?? { variantId: variant.id, trials };
      newest.set(name, { ...cell, planned: cell.planned ?? known.get(id) });
    }
  }
  const count = (trials: { status: string }[], statuses: string[]) =>
    trials.filter(({ status }) => statuses.includes(status)).length;
  const cells = [...newest.values()].flatMap(({ planned, variantId, trials }) => {
    const voids = count(trials, ['voided']);
    return planned && voids > 0 ? [{ planned, variantId, trials: voids }] : [];
  });
  const open = [...newest.values()].reduce(
    (sum, { trials }) => sum + count(trials, ['queued', 'running']),
    0,
  );
  return { cells, open };
}

export interface Rerun {
  /** The id of its workflow, which the commands of the fleet take in place of a batch's. */
  workflow: string;
  /** The batch with the new runs only. */
  batch: OpenBatch;
  /** How many trials each new run has. */
  trials: ReadonlyMap<string, number>;
}

/** Has the service queue a new run for each cell, and starts a workflow that runs them. */
export async function rerun(
  batch: OpenBatch,
  cells: readonly VoidCell[],
  parts: FleetStart,
  signal: AbortSignal,
): Promise<Rerun> {
  const poll = new PollHandle({ client: parts.temporal, fleet: parts.config.fleet });
  const cases = new Set(cells.map(({ planned }) => planned.caseId));
  return await poll.whileStarting([...cases], parts, () => started(batch, cells, parts, signal));
}

async function started(
  batch: OpenBatch,
  cells: readonly VoidCell[],
  parts: FleetStart,
  signal: AbortSignal,
): Promise<Rerun> {
  const { client, ledger, service } = parts;
  const trials = new Map<string, number>();
  const runs: Run[] = [];
  for (const { planned, variantId, trials: count } of cells) {
    const { request } = planned.case;
    const cellKey = `${request.id}:${variantId}`;
    const asked = { id: batch.id, cellKey, trials: count };
    const { id } = await client.call('evals.rerunCell', asked, { signal });
    const { runs: keys } = ledger.batches.join({
      service,
      id: batch.id,
      suite: batch.plan.suite.name,
      file: batch.plan.file,
      lock: fleetLock,
      plan: ledger.batches.byKey(batch.key).plan,
      runs: [
        {
          id,
          taskIndex: planned.taskIndex,
          caseId: request.id,
          caseName: request.name,
          variant: planned.variant.name,
          variantIndex: planned.variantIndex,
        },
      ],
    });
    const key = keys.get(id);
    if (key === undefined) throw new Error(`run ${id} was added but is not in the ledger`);
    trials.set(id, count);
    runs.push({ ...planned, id, key, setup: undefined, variantId });
  }
  const [first] = runs;
  if (!first) throw new Error('there is nothing to rerun');
  const again = { workflow: `${batch.id}/rerun-${first.id}`, batch: { ...batch, runs }, trials };
  await startWorkflow(again.batch, parts, signal, again);
  return again;
}
