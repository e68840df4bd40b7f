import type { Logger } from 'pino';
import type { Client } from '../../client/client.ts';
import type { Claims } from '../claims.ts';
import type { Sender } from '../sender.ts';
import type { WorkerParts } from '../worker/worker-parts.ts';
import type { DaemonStatus } from './status.ts';

/** What a daemon is made of. Its creator holds the data folder's lock for daemons. */
export interface DaemonParts
  extends Pick<
    WorkerParts,
    | 'engine'
    | 'moreEngines'
    | 'lateEngines'
    | 'runners'
    | 'ledger'
    | 'clock'
    | 'monotonic'
    | 'random'
    | 'extraCertificates'
    | 'revisions'
  > {
  client: Client;
  sender: Sender;
  /** The service's name in the ledger. */
  service: string;
  claims: Claims;
  log: Logger;
  /** Called when the daemon ends its running trials. From then on, nothing may wait longer than it must. */
  beginEnding(): void;
  /** Called every few seconds while no loop is stuck. */
  alive(): Promise<void>;
  /** Receives what the worker does, besides the log. */
  observe?: WorkerParts['observe'];
}

/** How a daemon ended. */
export interface DaemonEnd {
  finished: DaemonStatus['finished'];
  /** Results that the service does not show. */
  unreported: number;
  /** Whether the service's records could be read. */
  isCompared: boolean;
  /** Trials that are still queued: those of waiting and parked runs, and those that were queued again. */
  queued: number;
  /** How many files of the queue were refused, and why the last one was. */
  refused: { files: number; last: string | undefined };
  /** Whether every other batch in the queue could be started. */
  isBegun: boolean;
  /** The poll targets whose last poll failed. */
  pollFailures: { target: string; failure: string }[];
}
