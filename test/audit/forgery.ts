import type { AuditLevel } from '../../src/record/audit.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import type { Forger } from './forger.ts';

/** What an owner does, the level at which it is contradicted, and where. */
export type Forgery = [name: string, level: AuditLevel, at: string, forge: (forger: Forger) => void];

export const agentUsage = ({ models }: TrialRecord) => {
  const usage = models?.usage.find(({ role }) => role === 'agent')?.usage;
  if (!usage) throw new Error('it used no model');
  return usage;
};
export const first = <Item>(items: readonly Item[] | undefined): Item => {
  const [item] = items ?? [];
  if (item === undefined) throw new Error('the list is empty');
  return item;
};

export function madeVoid(record: TrialRecord, kind: 'infrastructure' | 'harness' | 'model'): TrialRecord {
  const cause = { kind, phase: 'harness' as const, message: 'it could not run' };
  return Object.assign(record, { verdict: 'void', cause });
}

export function withoutChecks(record: TrialRecord): void {
  for (const part of ['verifySteps', 'validations', 'judgments'] as const) delete record[part];
}

/** The record of a trial is edited, and all that Offsite makes from it is made anew. */
export const edited = (
  what: string,
  trial: string,
  at: string,
  change: (record: TrialRecord) => unknown,
): Forgery => [
  what,
  'consistent',
  `${trial} ${at}`,
  (f) => f.editAll(trial, (record) => void change(record)),
];

/** So is its last exchange with the model. */
export const exchanged = (
  what: string,
  trial: string,
  at: string,
  change: Parameters<Forger['editExchange']>[1],
): Forgery => [what, 'consistent', `${trial} ${at}`, (f) => f.editExchange(trial, change)];

/** Only its report is edited. */
export const reported = (
  what: string,
  trial: string,
  at: string,
  change: Parameters<Forger['editReport']>[1],
): Forgery => [what, 'consistent', `${trial} ${at}`, (f) => f.editReport(trial, change)];
