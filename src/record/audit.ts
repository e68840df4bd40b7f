import type { Cause } from './cause.ts';
import type { CheckBeside } from './checks-beside.ts';
import type { TrialRecord } from './trial-record.ts';

/** How far somebody else can check a result, each level with all before it. */
export const auditLevels = ['intact', 'consistent', 'regraded', 'replayed'] as const;
export type AuditLevel = (typeof auditLevels)[number];

/** A place where two things disagree that must agree. Values are printed on one line. Foreign text. */
export interface Contradiction {
  /** Where it is: a JSON path of the record, or what else was looked at. */
  path: string;
  /** What must be so, in words. */
  says: string;
  expected: string;
  found: string;
}

/**
 * `held`: all that could be checked agrees. `contradicted`: something does not. `not reached`: it could not
 * be checked, and `unchecked` says why.
 */
export interface AuditedLevel {
  level: AuditLevel;
  state: 'held' | 'contradicted' | 'not reached';
  contradictions: Contradiction[];
  /** What could not be checked, or was checked in another way, one line each. */
  unchecked: string[];
  /** What a level that was not reached lacks: something in the evidence, or something on the machine. */
  lacks?: 'evidence' | 'machine' | undefined;
}

/** What audits of a trial found, each level as it was looked at last. */
export interface TrialAudit {
  /** Of the last one, in epoch milliseconds. */
  at: number;
  /** In the order of {@link auditLevels}; those that nobody asked for are absent. */
  levels: AuditedLevel[];
}

/** What lists show of it. */
export interface AuditMark {
  at: number;
  standing: AuditStanding;
}

export type AuditStanding = AuditLevel | 'contradicted' | 'none';

/** How many trials have which standing. */
export type Audited = Partial<Record<AuditStanding, number>>;

/** The highest level that held with all before it, or that something is contradicted. */
export function auditStanding({ levels }: Pick<TrialAudit, 'levels'>): AuditStanding {
  if (levels.some(({ state }) => state === 'contradicted')) return 'contradicted';
  const end = levels.findIndex(({ level, state }, index) => state !== 'held' || level !== auditLevels[index]);
  return (end === -1 ? levels.at(-1) : levels[end - 1])?.level ?? 'none';
}

/** A later grading of a trial, beside the first one. */
export interface LaterGrading {
  /** Epoch milliseconds. */
  gradedAt: number;
  verdict: TrialRecord['verdict'];
  /** The suite file that said how to grade; absent for the plan of the batch. */
  suite?: string | undefined;
  notes: string[];
  cause?: Pick<Cause, 'kind' | 'phase' | 'message'> | undefined;
  /** One line for each check that failed. */
  failures: string[];
  checks: CheckBeside[];
  /** The sha256 of the blob with its record. */
  record: string;
  /** Why the record cannot be read. */
  unreadable?: string | undefined;
}
