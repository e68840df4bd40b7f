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
