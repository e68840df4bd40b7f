import type { Case, StartRequest, Suite } from '../contract/definition.ts';
import type { RunVariant, Setup } from '../contract/record.ts';
import type { TrialRecord } from '../record/trial-record.ts';

/**
 * Runs the trials of platform batches: those that are started without `local: true`. A service without one
 * refuses them.
 */
export interface Platform {
  /**
   * Why such a batch cannot be started now, or undefined. Asked before `evals.start` and before
   * `evals.rerunCell` of a platform batch. 409 if nothing can run trials here, 404 if the request names a
   * connection or a model that the configuration does not have.
   */
  refusal(request: PlatformRequest): Promise<PlatformRefusal | undefined>;
  /** Called after runs were queued and are on disk. Must not throw. */
  queued(): void;
}

/** A batch that the platform is to run. */
export interface PlatformRequest extends StartRequest {
  /** The batch of which one cell is run again, if that is what the request is. */
  rerunOf?: string;
}

export interface PlatformRefusal {
  status: 404 | 409;
  message: string;
}

/**
 * A platform run with trials that have not ended, and everything that is needed to run them. Its texts are
 * read each time they are asked for, because those of all runs may be larger than the memory.
 */
export interface OpenPlatformRun {
  id: string;
  batchId: string;
  /** The run's place in its batch, from 0. */
  taskIndex: number;
  readonly suite: Suite;
  /** The definition as it was sent. */
  readonly case: Case;
  /** The texts of the definition, with the case's variables filled in. */
  readonly setup: Setup;
  variant: RunVariant;
  trials: number;
  /** The ordinals of the trials that have ended, ascending. */
  ended: number[];
}

/** What the service offers to the process that runs the trials of platform batches. */
export interface PlatformTrials {
  /**
   * The platform runs with trials that have not ended, oldest first, of all organizations. The cost grows
   * with the number of these runs, not with the number of ended ones.
   *
   * @param known ids of runs to leave out. Their definitions are not read, so that asking often is cheap.
   */
  openRuns(known?: ReadonlySet<string>): OpenPlatformRun[];
  /**
   * Records an ended trial and resolves when it is on disk. A trial is recorded once: for a trial that is
   * recorded already, nothing changes and the answer is `already`. Throws `RUN_UNKNOWN` if there is no such
   * platform run or if it has no such trial.
   */
  complete(runId: string, ordinal: number, result: TrialRecord): Promise<'recorded' | 'already'>;
  /**
   * Shows a trial that has not ended as `running`, or as `queued` again. Only this process shows it, because
   * it is not stored.
   */
  show(runId: string, ordinal: number, status: 'running' | 'queued'): void;
}

/** Audits evidence that somebody sent, which may be hostile. */
export interface Auditor {
  /** Rejects with an `ApiError` for evidence that cannot be read. */
  audit(file: string, signal: AbortSignal): Promise<AuditedEvidence>;
}

/** What an audit found, by itself: nothing of it was compared with what the service has. */
export interface AuditedEvidence {
  /** What is contradicted of the batch as a whole: then no trial can be marked. Undefined if nothing is. */
  contradiction: string | undefined;
  /** Its trials with a result. */
  trials: {
    runId: string;
    ordinal: number;
    /** Undefined if it, or a level before it, does not hold. */
    level: 'consistent' | 'regraded' | undefined;
    /** Why there is no level, or none above `consistent`. */
    reason: string | undefined;
    /** The sha256 of its record. */
    record?: string | undefined;
    /** Of its report, as `digestOfReport` makes it; undefined if it has none that can be read. */
    report?: string | undefined;
    /** Of the setup of its run, as `digestOfSetup` makes it. */
    setup?: string | undefined;
  }[];
}
