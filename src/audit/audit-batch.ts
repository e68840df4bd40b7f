import pLimit from 'p-limit';
import { readPlan } from '../agent/batch-run.ts';
import { messageOf } from '../base/offsite-error.ts';
import { printedText } from '../bounds/anyone.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import { listTrials } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { listingsOf } from '../ledger/listings.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import type { AuditedLevel, AuditLevel, TrialAudit } from '../record/audit.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { plural } from '../text/quantities.ts';
import { Checks, notReached } from './checks.ts';
import { consistentLevel } from './consistent.ts';
import {
  type AuditedTrial,
  auditedTrial,
  type DefinitionParts,
  definitionOf,
  type IsLeftOut,
} from './evidence-of-trial.ts';
import { contentsOf, type EvidenceProblem, intactLevel } from './intact.ts';

/** How a level that needs an engine is looked at. Rejects only if the signal aborts. */
export type LookAgain = (trial: AuditedTrial, signal: AbortSignal) => Promise<AuditedLevel>;

export interface AuditParts extends DefinitionParts {
  /** Epoch milliseconds. */
  now: number;
  /** The blob with the definition, if the ledger has another one to run. */
  definition?: string | undefined;
  /** What was wrong with the file that the batch comes from. */
  problems: readonly EvidenceProblem[];
  isLeftOut: IsLeftOut;
  /** The levels that need an engine. Those that are absent are not asked for. */
  regraded?: LookAgain | undefined;
  replayed?: LookAgain | undefined;
  /** Trials at a time. */
  concurrency: number;
  observe(event: AuditEvent): void;
}

export type AuditEvent =
  /** So many trials will be audited. */
  | { kind: 'planned'; trials: number }
  | { kind: 'level'; trial: StoredTrial; level: AuditLevel }
  /** All levels of the trial are known. */
  | { kind: 'audited'; trial: StoredTrial; audit: TrialAudit; ms: number };

export interface BatchAudit {
  /** About the batch as a whole. */
  whole: Checks;
  /** In the order of lists. */
  trials: { trial: StoredTrial; audit: TrialAudit }[];
  /** How many trials were not audited because the signal aborted. */
  left: number;
}

/**
 * Audits the finished trials of a batch, level by level. It changes nothing in the ledger. A level is looked
 * at even if an earlier one is contradicted, because each says something else. If the signal aborts, returns
 * what was found by then.
 *
 * @param only set to audit only these trials
 */
export async function auditBatch(
  batch: StoredBatch,
  parts: AuditParts,
  signal: AbortSignal,
  only: (trial: StoredTrial) => boolean = () => true,
): Promise<BatchAudit> {
  const { ledger, now, definition, problems, isLeftOut } = parts;
  const whole = new Checks();
  for (const problem of problems) {
    if (typeof problem === 'string') whole.missed(problem);
    else whole.contradicted(problem.path, problem.says, problem.expected, problem.found);
  }
  const specOf = definitionOf({ ...batch, ...(definition !== undefined && { plan: definition }) }, parts);
  const finished = listTrials(ledger.records, batch.key, 'all').filter(({ result }) => result !== undefined);
  const listings = listingsOf(ledger, batch.key);
  const taskIndexes = new Map(ledger.batches.runs(batch.key).map((run) => [run.key, run.taskIndex]));
  const contents = contentsOf(ledger);
  const seen: SeenTrial[] = [];
  const limit = pLimit(parts.concurrency);
  const levelsOf = async (trial: StoredTrial): Promise<AuditedLevel[]> => {
    signal.throwIfAborted();
    const audited = await auditedTrial(trial, ledger, specOf, isLeftOut);
    if (typeof audited === 'string') {
      if (isLeftOut(trial.result ?? '')) return [notReached('intact', 'its record is no longer kept')];
      const checks = new Checks();
      checks.contradicted('record', 'the record can be read', 'a record', audited);
      return [checks.level('intact')];
    }
    const { sandboxId, verdict } = audited.record;
    seen.push({ trial, sandboxId, verdict });
    const given = {
      ledger,
      listing: listings.get(trial.key),
      batchStartedAt: batch.startedAt,
      taskIndex: taskIndexes.get(trial.run) ?? 0,
    };
    const again = (level: 'regraded' | 'replayed') => {
      if (parts[level]) parts.observe({ kind: 'level', trial, level });
      return parts[level]?.(audited, signal);
    };
    const levels = [
      await intactLevel(audited, { ledger, contents, isLeftOut }),
      await consistentLevel(audited, given),
      await again('regraded'),
      await again('replayed'),
    ];
    return levels.filter((level) => level !== undefined);
  };
  const wanted = finished.filter(only);
  parts.observe({ kind: 'planned', trials: wanted.length });
  const auditOf = async (trial: StoredTrial) => {
    const startedAt = performance.now();
    try {
      const audit = { at: now, levels: await levelsOf(trial) };
      parts.observe({ kind: 'audited', trial, audit, ms: performance.now() - startedAt });
      return [{ trial, audit }];
    } catch (error) {
      if (signal.aborted) return [];
      throw error;
    }
  };
  const trials = (await Promise.all(wanted.map((trial) => limit(auditOf, trial)))).flat();
  checkBatch(batch, { ledger, definition, seen }, whole);
  return { whole, trials, left: wanted.length - trials.length };
}

/** What is remembered of a trial, whose record may be large. */
interface SeenTrial extends Pick<TrialRecord, 'sandboxId' | 'verdict'> {
  trial: StoredTrial;
}

/** The trials are those that the definition asks for, each once, and none is a copy of another one. */
export function checkBatch(
  batch: StoredBatch,
  {
    ledger,
    definition = batch.plan,
    seen,
  }: { ledger: Ledger; definition: string | undefined; seen: readonly SeenTrial[] },
  checks: Checks,
): void {
  checkNumber(batch, definition, ledger, checks);
  const says = 'each trial ran in a sandbox of its own';
  const sandboxes = new Map<string, string>();
  let unnamed = 0;
  for (const { trial, sandboxId, verdict } of seen) {
    if (sandboxId === undefined) {
      if (verdict !== 'void') unnamed += 1;
      continue;
    }
    const name = `${trial.caseId}/${trial.variant}#${trial.ordinal}`;
    const other = sandboxes.get(sandboxId);
    if (other !== undefined)
      checks.contradicted(`sandboxId of ${name}`, says, 'a sandbox of its own', `that of ${other}`);
    else sandboxes.set(sandboxId, name);
  }
  if (unnamed > 0) checks.missed(`whether ${unnamed} trials are copies: their records name no sandbox`);
}

function checkNumber(
  { key, suite }: StoredBatch,
  definition: string | undefined,
  ledger: Ledger,
  checks: Checks,
): void {
  if (definition === undefined) {
    checks.missed('whether trials are missing: the definition of the batch was not kept');
    return;
  }
  const says = 'the trials are those that the definition asks for';
  try {
    const plan = readPlan(ledger.blobs.readJson(definition));
    checks.same('suite', 'the suite is that of the definition', plan.suite.name, suite);
    const cells = Map.groupBy(
      ledger.batches.runs(key),
      ({ caseId, variantIndex }) => `${variantIndex} ${caseId}`,
    );
    for (const { request } of plan.cases)
      for (const [variantIndex, { name }] of plan.variants.entries()) {
        const cell = `${variantIndex} ${request.id}`;
        const own = cells.get(cell) ?? [];
        cells.delete(cell);
        const label = `${request.id}/${name}`;
        checks.same(label, says, plural(1, 'run'), plural(own.length, 'run'));
        for (const run of own) checkOrdinals(label, says, run.key, plan.trials, ledger, checks);
      }
    for (const { caseId } of [...cells.values()].flat())
      checks.contradicted(caseId, says, 'a case of the definition', 'another');
  } catch (error) {
    checks.contradicted('definition', 'the definition can be read', 'a definition', messageOf(error));
  }
}

function checkOrdinals(
  name: string,
  says: string,
  run: number,
  wanted: number,
  ledger: Ledger,
  checks: Checks,
): void {
  // Withdrawn ones too, which lists leave out.
  const rows = ledger.records.all('SELECT ordinal, result FROM trials WHERE run = ? ORDER BY ordinal', run);
  const ordinals = new Set(rows.map(({ ordinal }) => Number(ordinal)));
  // A definition of somebody else may ask for any number: of very many, only the first ones are named.
  const named = Math.min(wanted, ordinals.size + printedText.count.lines);
  for (let ordinal = 0; ordinal < named; ordinal++)
    if (!ordinals.has(ordinal)) checks.contradicted(`${name}#${ordinal}`, says, 'a trial', 'none');
  for (const ordinal of ordinals)
    if (ordinal >= wanted) checks.contradicted(`${name}#${ordinal}`, says, `${wanted} trials`, 'one more');
  const open = rows.filter(({ result }) => result === null).length;
  if (open > 0) checks.missed(`${open} of the trials of ${name}: they have no result`);
}
