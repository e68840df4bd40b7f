import { systemClock } from '../../src/base/clock.ts';
import { createClient } from '../../src/client/client.ts';
import type { FaultFront } from '../../test/faults/fault-front.ts';
import type { FedRun } from './feeder.ts';

/** What the service has recorded of the queued runs. */
export interface ReadBack {
  runs: number;
  /** Runs whose trials are all recorded. */
  reported: number;
  /** Trials without a result at the service. */
  lost: number;
  /** Trials of which the service accepted more than one result, or that it has twice. */
  duplicates: number;
  /** Recorded trials without a verdict: something other than their agent went wrong. */
  voided: number;
}

/** Reads every queued run from the service, and compares it with the reports that passed the front. */
export async function readBack(front: FaultFront, fed: readonly FedRun[]): Promise<ReadBack> {
  await using client = createClient({ url: front.url, apiKey: front.key, clock: systemClock });
  const records = new Map<string, { ordinal: number; status: string }[]>();
  for (const caseId of new Set(fed.map(({ caseId }) => caseId))) {
    for await (const { id, trials = [] } of client.runs({ caseId })) records.set(id, trials);
  }
  const result: ReadBack = { runs: fed.length, reported: 0, lost: 0, duplicates: 0, voided: 0 };
  for (const { run, trials } of fed) {
    const recorded = (records.get(run) ?? []).filter(
      ({ status }) => status === 'reported' || status === 'voided',
    );
    const different = new Set(recorded.map(({ ordinal }) => ordinal)).size;
    if (different === trials) result.reported++;
    result.lost += trials - different;
    result.duplicates += recorded.length - different;
    result.voided += recorded.filter(({ status }) => status === 'voided').length;
  }
  for (const contents of front.accepted.values()) result.duplicates += contents.size - 1;
  return result;
}
