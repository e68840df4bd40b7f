import { daemonLock } from '../../ledger/queue.ts';
import { addressesOf, areSeveral } from '../engines/check.ts';
import type { Worker } from '../worker/worker.ts';
import type { DaemonParts } from './daemon-parts.ts';
import type { HealthWatch } from './health.ts';
import type { Metrics } from './metrics.ts';
import type { PollTargets } from './poll-targets.ts';
import { type DaemonStatus, type Mode, nothingListed, type RunningTrial } from './status.ts';
import { refusedTickets } from './ticket.ts';

export interface Members {
  mode: Mode;
  /** Monotonic milliseconds. */
  startedAt: number;
  targets: PollTargets;
  metrics: Metrics;
  health: HealthWatch;
  worker: Worker;
}

/** The status of a daemon, gathered from its parts. */
export function statusOf(
  parts: DaemonParts,
  { mode, startedAt, targets, metrics, health, worker }: Members,
): DaemonStatus {
  const { ledger, service, monotonic, clock, revisions } = parts;
  const waitingRuns = worker.waiting.all();
  const { oldestAt, nextAt: _, ...reports } = ledger.outbox.standing(service);
  return {
    pid: process.pid,
    mode,
    blocked: worker.blocked,
    upMs: Math.round(monotonic() - startedAt),
    service,
    engine: addressesOf(parts),
    ...(areSeveral(parts) && { engines: worker.engines() }),
    dataFolder: ledger.dataFolder,
    concurrency: worker.concurrency,
    queued: ledger.queue.count({ service, lock: daemonLock }),
    queuedRuns: ledger.queue.runs({ service, lock: daemonLock }, 100),
    running: worker.running().map((trial) => runningTrial(trial, monotonic())),
    building: worker
      .building()
      .map(({ what, state, at }) => ({ what, state, forMs: Math.round(monotonic() - at) })),
    waiting: waitingRuns.filter(({ kind }) => kind === 'waiting'),
    parked: waitingRuns.filter(({ kind }) => kind === 'parked'),
    claimedElsewhere: worker.elsewhere.all().map(({ trial: { runId, caseId, ordinal }, until }) => {
      return { run: runId, case: caseId, ordinal, freeInMs: Math.round(until - monotonic()) };
    }),
    refused: refusedTickets(ledger.dataFolder),
    finished: { ...metrics.counts },
    limits: revisions.current.gateway
      .limits()
      .map(({ name, limit, most, wanted }) => ({ model: name, limit, most, inFlight: wanted })),
    outbox: { ...reports, oldestMs: oldestAt && Math.max(0, clock.now() - oldestAt) },
    polls: [
      ...targets.failures.map(({ target, failure }) => ({ place: target, trouble: failure })),
      ...targets.empty.map((target) => ({ place: target, trouble: nothingListed })),
    ],
    health: health.health,
    residentBytes: process.memoryUsage.rss(),
  };
}

function runningTrial(
  { trial, running, engine }: ReturnType<Worker['running']>[number],
  now: number,
): RunningTrial {
  const { batchId, runId, caseId, ordinal } = trial;
  const { phase, at } = running;
  const forMs = Math.round(now - at);
  return { batch: batchId, run: runId, case: caseId, ordinal, phase, ...(engine && { engine }), forMs };
}
