import type { Client } from '../client/client.ts';
import type { RunRecord } from '../contract/record.ts';
import { OffsiteError } from '../offsite-error.ts';

/**
 * The records of a batch's runs, as the service has them now, by run id. Asks page after page of each case until all its runs are
 * found. Throws where the service does not list a run that it has started.
 */
export async function pullRuns(
  client: Client,
  started: readonly { id: string; caseId: string }[],
  signal: AbortSignal,
): Promise<Map<string, RunRecord>> {
  const records = new Map<string, RunRecord>();
  for (const [caseId, runs] of Map.groupBy(started, (run) => run.caseId)) {
    const wanted = new Set(runs.map(({ id }) => id));
    for await (const record of client.runs({ caseId }, { signal })) {
      if (!wanted.delete(record.id)) continue;
      records.set(record.id, record);
      if (wanted.size === 0) break;
    }
    if (wanted.size > 0) {
      throw new OffsiteError(
        `the service started run ${[...wanted].join(', ')} but does not list it for case ${caseId}`,
        {
          code: 'RUN_NOT_LISTED',
          kind: 'infrastructure',
          hint: 'Check that the key may read runs (evals:read) and belongs to the organization that started them.',
        },
      );
    }
  }
  return records;
}
