import { type BackoffLimits, backoff } from '../base/backoff.ts';
import type { Clock } from '../base/clock.ts';
import type { Client } from '../client/client.ts';
import type { StartResponse } from '../contract/definition.ts';
import type { RunRecord } from '../contract/record.ts';
import type { SuitePlan } from '../suite/plan.ts';

/** Milliseconds between two looks at the service. */
const waits: BackoffLimits = { first: 1_000, longest: 15_000 };

/** The results of a batch that a service ran, as it reports them. */
export interface PlatformSummary {
  batchId: string;
  service: string;
  passed: number;
  failed: number;
  void: number;
  /** Passed of scored trials, 0 to 1; absent if no trial was scored. */
  passRate: number | undefined;
  runs: PlatformRun[];
}

export interface PlatformRun {
  id: string;
  case: string;
  variant: string;
  /** As the service names it. */
  status: string;
  passed: number;
  failed: number;
  void: number;
  passRate: number | undefined;
}

interface WaitParts {
  client: Client;
  clock: Clock;
  service: string;
  /** Called whenever more trials have ended. */
  progress(ended: number): void;
}

/** Asks the service again and again until all trials of a batch are over. */
export async function waitForBatch(
  { id: batchId, runs }: StartResponse,
  { variants }: SuitePlan,
  { client, clock, service, progress }: WaitParts,
  signal: AbortSignal,
): Promise<PlatformSummary> {
  const records = new Map<string, RunRecord>();
  for (let quiet = 0, reported = 0; ; ) {
    const open = runs.filter(({ id }) => !isOver(records.get(id)));
    for (const [caseId, ofCase] of Map.groupBy(open, (run) => run.caseId)) {
      const wanted = new Set(ofCase.map(({ id }) => id));
      for await (const record of client.runs({ caseId }, { signal })) {
        // The page holds whole trials; only their counts are needed.
        if (wanted.delete(record.id)) records.set(record.id, { ...record, trials: [], setup: undefined });
        if (wanted.size === 0) break;
      }
    }
    if (runs.every(({ id }) => isOver(records.get(id)))) break;
    const ended = [...records.values()].reduce((sum, record) => sum + endedIn(record), 0);
    quiet = ended > reported ? 1 : quiet + 1;
    if (ended > reported) progress(ended);
    reported = ended;
    await clock.sleep(backoff(quiet, waits, Math.random), signal);
  }
  const found = runs.map((run) => {
    return platformRun(
      run.caseId,
      variants[run.variantIndex]?.name ?? '',
      records.get(run.id) ?? { id: run.id },
    );
  });
  return { batchId, service, ...tally(found), runs: found };
}

function isOver(record: RunRecord | undefined): boolean {
  return record?.status !== undefined && record.status !== 'queued' && record.status !== 'running';
}

function endedIn({ distribution }: RunRecord): number {
  return (distribution?.scored ?? 0) + (distribution?.voided ?? 0);
}

function platformRun(
  caseId: string,
  variant: string,
  { id, status = '', distribution }: RunRecord,
): PlatformRun {
  const { passed = 0, failed = 0, voided = 0, passRate } = distribution ?? {};
  return { id, case: caseId, variant, status, passed, failed, void: voided, passRate };
}

function tally(runs: readonly PlatformRun[]) {
  const sum = (of: (run: PlatformRun) => number) => runs.reduce((total, run) => total + of(run), 0);
  const passed = sum((run) => run.passed);
  const failed = sum((run) => run.failed);
  const scored = passed + failed;
  return {
    passed,
    failed,
    void: sum((run) => run.void),
    passRate: scored === 0 ? undefined : passed / scored,
  };
}
