/** What a Temporal server has counted since its start, by name and labels. */
export type ServerCounts = Map<string, number>;

const sample = /^(?<name>\w+)\{(?<labels>.*)\} (?<value>\S+)$/;

/** Reads the server's counters. Rejects if it does not answer. */
export async function serverCounts(metrics: string): Promise<ServerCounts> {
  const answer = await fetch(metrics, { signal: AbortSignal.timeout(10_000) });
  const counts: ServerCounts = new Map();
  for (const line of (await answer.text()).split('\n')) {
    const { name, labels, value } = sample.exec(line)?.groups ?? {};
    if (name === undefined || labels === undefined) continue;
    const label = (wanted: string) => new RegExp(`(?:^|,)${wanted}="([^"]*)"`).exec(labels)?.[1];
    const key = keyOf(name, label);
    if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + Number(value));
  }
  return counts;
}

/**
 * The counters of interest: requests of clients and workers, writes and reads of the database, billable
 * actions.
 */
function keyOf(name: string, label: (wanted: string) => string | undefined): string | undefined {
  switch (name) {
    case 'service_requests':
      return label('service_name') === 'frontend' ? `request ${label('operation')}` : undefined;
    case 'persistence_requests':
      return `database ${label('operation')}`;
    case 'persistence_latency_sum':
      return label('operation') === 'UpdateWorkflowExecution' ? 'change seconds' : undefined;
    case 'action':
      return `action ${label('action_type')}`;
    default:
      return undefined;
  }
}

/** What was counted between two readings, divided by the trials in between. */
export function perTrial(before: ServerCounts, after: ServerCounts, trials: number): Map<string, number> {
  const counted = [...after].map(([key, count]): [string, number] => {
    return [key, (count - (before.get(key) ?? 0)) / trials];
  });
  return new Map(counted.filter(([, count]) => count > 0).toSorted(([, one], [, other]) => other - one));
}
