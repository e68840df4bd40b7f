import { fittingBatches, fittingRuns } from '../../ledger/find.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { daemonLock } from '../../ledger/queue.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';

/** The open runs of a daemon that a person means by the id of a batch or of a run, or by a suite. */
export interface NamedRuns {
  kind: 'batch' | 'run';
  /** The service's id of the batch, or of the run. */
  id: string;
  runs: Pick<StoredTrial, 'batchId' | 'runId' | 'origin'>[];
}

/** What a name means: the open runs of one batch, or one open run. Otherwise why it means neither. */
export function namedRuns(ledger: Ledger, service: string, name: string): NamedRuns | string {
  const open = ledger.queue.openRuns({ service, lock: daemonLock });
  const batches: NamedRuns[] = [...Map.groupBy(open, ({ batchId }) => batchId)].map(([id, runs]) => {
    return { kind: 'batch', id, runs };
  });
  const all = [...batches, ...open.map((run) => ({ kind: 'run' as const, id: run.runId, runs: [run] }))];
  const suites = new Set(open.filter(({ suite }) => suite === name).map(({ batchId }) => batchId));
  const ways: ((id: string) => boolean)[] = [
    (id) => id === name || bare(id) === name,
    (id) => suites.has(id),
    (id) => id.startsWith(name) || bare(id).startsWith(name),
  ];
  for (const isMeant of ways) {
    const [one, ...others] = all.filter(({ id }) => isMeant(id));
    if (one && others.length === 0) return one;
    if (one)
      return `${name} means ${[one, ...others].map(({ kind, id }) => `${kind} ${id}`).join(', ')}: name one`;
  }
  const { records } = ledger;
  const [run] = fittingRuns(records, name);
  const batch = fittingBatches(records, name)[0] ?? (run && ledger.batches.byKey(run.batch));
  const shown = batch
    ? `\`offsite service runs ${batch.id}\` shows how its trials ended`
    : '`offsite daemon status` lists them';
  return `this daemon has no open trial of a batch or run ${name}, or of a suite with this name: ${shown}`;
}

function bare(id: string): string {
  return id.replace(/^(batch|run)_/, '');
}
