import type { Client } from '../client/client.ts';

/** For how many of a batch's trials the Eval Service has results. */
export async function countReported(
  runs: readonly { id: string; caseId: string }[],
  client: Pick<Client, 'runs'>,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for (const [caseId, ofCase] of Map.groupBy(runs, (run) => run.caseId)) {
    const wanted = new Set(ofCase.map(({ id }) => id));
    for await (const { id, trials = [] } of client.runs({ caseId }, { signal })) {
      if (!wanted.delete(id)) continue;
      count += trials.filter(({ status }) => status !== 'queued' && status !== 'running').length;
      if (wanted.size === 0) break;
    }
  }
  return count;
}
