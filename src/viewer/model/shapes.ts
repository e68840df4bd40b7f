import { platformService } from '../../ledger/platform.ts';
import type { ListedAttempt } from '../../record/attempt.ts';
import type { AuditMark, LaterGrading } from '../../record/audit.ts';
import type { Cause } from '../../record/cause.ts';
import type { KnownFingerprint } from '../../record/fingerprint.ts';
import type { Elapsed } from '../../record/listing.ts';
import type { SuiteCommit } from '../../record/suite-commit.ts';
import type { TrialRecord } from '../../record/trial-record.ts';

/**
 * What pages show, as the server answers it and as an exported page contains it. Times are epoch
 * milliseconds.
 */

/** Identity of a batch. */
export interface BatchName {
  /** The ledger's key, which addresses the batch in URLs. */
  key: number;
  /** The service's id. */
  id: string;
  suite: string;
  /** The service's name in the ledger. */
  service: string;
  startedAt: number;
  /** Of the repository that its suite is in; absent if it is in none. */
  commit?: SuiteCommit | undefined;
  /** Its place in the set that it belongs to; absent if it belongs to none. Numbers begin with 1. */
  set?: { id: string; number: number; of: number } | undefined;
}

export interface BatchRow extends BatchName {
  passed: number;
  failed: number;
  void: number;
  /** Trials without a result. Withdrawn trials do not count. */
  unfinished: number;
  /** What to know about it, such as that it replays, or that trials are left. */
  marks: string[];
}

/** A batch in the list of all. */
export interface BatchInList extends BatchRow {
  /** The beginning of its id that commands print and take. */
  shortId: string;
  variants: string[];
  /** Whether it ran all cases of its suite with live models, so that its rate goes with those of others. */
  isWhole: boolean;
  /** From the start of its first trial to its last result so far; absent before that. */
  elapsed?: Elapsed | undefined;
  /** Of the agents' models; absent unless it is known for each trial. */
  tokens?: number | undefined;
  costUsd?: number | undefined;
}

export interface TrialRow {
  key: number;
  caseId: string;
  caseName: string;
  variant: string;
  ordinal: number;
  state: 'queued' | 'running' | 'finished';
  /** Absent until the trial is finished. */
  verdict?: TrialRecord['verdict'] | undefined;
  cause?: CauseOfRow | undefined;
  /** Absent if it was never audited. */
  audit?: AuditMark | undefined;
  /** Set if the service has another result of it, so that this one does not count. */
  superseded?: true | undefined;
  /** How many attempts began. */
  attempts: number;
  /** When its last attempt began. */
  startedAt?: number | undefined;
  /** Milliseconds from its beginning to its end, without other attempts; absent if that is not known. */
  durationMs?: number | undefined;
  /** Why it did not pass, on one line. In lists only, as the numbers of the agent's models. */
  reason?: string | undefined;
  tokens?: number | undefined;
  costUsd?: number | undefined;
  /** Of judges and simulated users. */
  otherCostUsd?: number | undefined;
  /** Set if its record cannot be read, which `reason` explains: its numbers are unknown. */
  unreadable?: true | undefined;
}

/** Why a trial has no verdict, without the output. */
export type CauseOfRow = Pick<Cause, 'kind' | 'phase' | 'message'>;

export interface BatchPage {
  batch: BatchRow;
  /** By case, variant and ordinal. */
  trials: TrialRow[];
  /** What its trials with a verdict asked, how they were graded, and what worked on them. */
  fingerprints: KnownFingerprint[];
  /**
   * How many finished trials lack what lists show of them, because their records are still to be read: ask
   * again. Absent if there are none.
   */
  unread?: number | undefined;
  /** Set in an exported page. */
  exported?: Exported | undefined;
}

/** When, with what and on which machine a page was exported. */
export interface Exported {
  at: number;
  /** Its version. */
  offsite: string;
  /** `linux/x64, Node.js 24.18.0`. */
  machine: string;
}

export type AttemptRow = Omit<ListedAttempt, 'result'> & {
  /** Whether a record of what it found is kept. */
  hasRecord: boolean;
};

/** A record whose long texts are cut. */
export interface CutRecord {
  record: TrialRecord;
  /**
   * The length, in characters, of each value that was cut, by its JSON pointer. A cut text keeps its
   * beginning and its end. A cut value of another kind is replaced by the cut text of its JSON.
   */
  cuts: Record<string, number>;
}

export interface TrialPage {
  batch: BatchName;
  trial: TrialRow;
  attempts: AttemptRow[];
  /** Later gradings of what the trial left, oldest first. */
  gradings: LaterGrading[];
  /** The attempt that `found` belongs to; absent for the trial's own result. */
  attempt?: number | undefined;
  /** Absent until there is a result. */
  found?: CutRecord | undefined;
  /** Why the record cannot be shown: it is damaged, or a newer Offsite wrote it. */
  unreadable?: string | undefined;
}

/** What changed in the ledger after a change. */
export interface LedgerChanges {
  /** The last change, to ask for those after it. */
  last: number;
  /** Keys of batches with a change. */
  batches: number[];
  /** Keys of trials with a change. */
  trials: number[];
}

/** Which batch of which set: `2 of 3 of set_0123456789abcdef`. */
export function partText({ id, number, of }: NonNullable<BatchName['set']>): string {
  return `${number} of ${of} of ${id}`;
}

/** Whether the embedded service ran the batch itself, as a platform does. */
export function isPlatforms(service: string): boolean {
  return service === platformService;
}
