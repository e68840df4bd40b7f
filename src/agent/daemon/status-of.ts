import { daemonLock } from '../../ledger/queue.ts';
import type { Admission } from '../admission.ts';
import type { DaemonParts } from './daemon-parts.ts';
import type { HealthWatch } from './health.ts';
import type { Metrics } from './metrics.ts';
import type { Places } from './places.ts';
import type { DaemonStatus, Mode } from './status.ts';
import type { WaitingRuns } from './waiting-runs.ts';
import type { Work } from './work.ts';

export interface Members {
  mode: Mode;
  /** Monotonic milliseconds. */
  startedAt: number;
  waiting: WaitingRuns;
  places: Places;
  admission: Admission;
  metrics: Metrics;
  health: HealthWatch;
  work: Work;
}

/** What a daemon is at, gathered from all that it is made of. */
export function statusOf(
  { engine, ledger, service, monotonic, clock }: DaemonParts,
  { mode, startedAt, waiting, places, admission, metrics, health, work }: Members,
): DaemonStatus {
  const waitingRuns = waiting.all();
  const { queued, parked, oldestAt } = ledger.outbox.standing(service);
  return {
    pid: process.pid,
    mode,
    blocked: work.blocked,
    upMs: Math.round(monotonic() - startedAt),
    service,
    engine: engine.address,
    dataFolder: ledger.dataFolder,
    concurrency: admission.concurrency,
    queued: ledger.queue.count({ service, lock: daemonLock }),
    running: work.running(),
    waiting: waitingRuns.filter(({ kind }) => kind === 'waiting'),
    parked: waitingRuns.filter(({ kind }) => kind === 'parked'),
    finished: { ...metrics.counts },
    outbox: { queued, parked, oldestMs: oldestAt && Math.max(0, clock.now() - oldestAt) },
    polls: places.troubles,
    health: health.health,
    residentBytes: process.memoryUsage.rss(),
  };
}
