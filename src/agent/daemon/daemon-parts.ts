import type { Logger } from 'pino';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../clock.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Runner } from '../../harness/runner.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Claims } from '../claims.ts';
import type { ConfigRevisions } from '../config-revision.ts';
import type { Delivery } from '../delivery.ts';
import type { WorkEvent } from '../worker/worker-parts.ts';
import type { DaemonStatus } from './status.ts';

/** What a daemon is made of. Its creator holds the data folder's lock for daemons. */
export interface DaemonParts {
  engine: Engine;
  runners: readonly Runner[];
  ledger: Ledger;
  client: Client;
  delivery: Delivery;
  /** The service's name in the ledger. */
  service: string;
  claims: Claims;
  clock: Clock;
  /** Milliseconds, never set back. */
  monotonic: () => number;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
  /** The host's, for install and prepare. */
  extraCertificates: Buffer | undefined;
  log: Logger;
  revisions: ConfigRevisions;
  /** Called every few seconds while no loop is stuck. */
  alive(): Promise<void>;
  /** Receives what the worker does, besides the log. */
  observe?(event: WorkEvent): void;
}

/** How a daemon ended. */
export interface DaemonEnd {
  finished: DaemonStatus['finished'];
  /** Results that the service has not accepted. */
  unreported: number;
  /** Trials that are still queued: those of waiting and parked runs, and those that were queued again. */
  queued: number;
  /** Whether every batch in the queue could be started. */
  isBegun: boolean;
  /** The poll targets whose last poll failed. */
  pollFailures: DaemonStatus['polls'];
}
