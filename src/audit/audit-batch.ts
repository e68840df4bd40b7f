import pLimit from 'p-limit';
import type { StoredBatch } from '../ledger/batches.ts';
import { type ListedTrial, listTrials } from '../ledger/find.ts';
import { listingsOf } from '../ledger/listings.ts';
import type { AuditedLevel, TrialAudit } from '../record/audit.ts';
import { checkBatch, type SeenTrial } from './batch-checks.ts';
import { Checks } from './checks.ts';
import { consistentLevel } from './consistent.ts';
import { type AuditedTrial, auditedTrial, type DefinitionParts, definitionOf } from './evidence-of-trial.ts';
import { Contents, type EvidenceProblem, intactLevel, noteProblems } from './intact.ts';

/** How a level that needs an engine is looked at. Rejects only if the signal aborts. */
export type LookAgain = (trial: AuditedTrial, signal: AbortSignal) => Promise<AuditedLevel>;

export interface AuditParts extends DefinitionParts {
  /** Epoch milliseconds. */
  now: number;
  /** The blob with the definition, if the ledger has another one to run. */
  definition?: string | undefined;
  /** What was wrong with the file that the batch comes from. */
  problems: readonly EvidenceProblem[];
  /** The levels that need an engine. Those that are absent are not asked for. */
  regraded?: LookAgain | undefined;
  replayed?: LookAgain | undefined;
  /** Trials at a time. */
  concurrency: number;
  /** Called with each trial when all its levels are known. */
  observe(trial: ListedTrial, audit: TrialAudit): void;
}

export interface BatchAudit {
  /** About the batch as a whole. */
  whole: Checks;
  /** In the order of lists. */
  trials: { trial: ListedTrial; audit: TrialAudit }[];
}

/**
 * Audits the finished trials of a batch, level by level. It changes nothing in the ledger. A level is looked
 * at even if an earlier one is contradicted, because each says something else.
 *
 * @param only set to audit only these trials
 */
export async function auditBatch(
  batch: StoredBatch,
  parts: AuditParts,
  signal: AbortSignal,
  only: (trial: ListedTrial) => boolean = () => true,
): Promise<BatchAudit> {
  const { ledger, now, definition, problems } = parts;
  const whole = new Checks();
  const problemsOf = Map.groupBy(problems, (problem) => problem.trial);
  noteProblems(problemsOf.get(undefined) ?? [], whole);
  const specOf = definitionOf({ ...batch, ...(definition !== undefined && { plan: definition }) }, parts);
  const finished = listTrials(ledger.records, batch.key).filter(({ result }) => result !== undefined);
  const listings = listingsOf(ledger, batch.key);
  const taskIndexes = new Map(ledger.batches.runs(batch.key).map((run) => [run.key, run.taskIndex]));
  const contents = new Contents(ledger);
  const seen: SeenTrial[] = [];
  const limit = pLimit(parts.concurrency);
  const levelsOf = async (trial: ListedTrial): Promise<AuditedLevel[]> => {
    signal.throwIfAborted();
    const own = problemsOf.get(trial.key) ?? [];
    const audited = await auditedTrial(trial, ledger, specOf);
    if (typeof audited === 'string') {
      const checks = new Checks();
      noteProblems(own, checks);
      // What is wrong with the file says why.
      if (!checks.isContradicted)
        checks.contradicted('record', 'the record can be read', 'a record', audited);
      return [checks.level('intact')];
    }
    const { sandboxId, verdict } = audited.record;
    seen.push({ trial, sandboxId, verdict });
    const given = {
      ...{ ledger, listing: listings.get(trial.key), batchStartedAt: batch.startedAt },
      taskIndex: taskIndexes.get(trial.run) ?? 0,
    };
    return [
      await intactLevel(audited, { ledger, contents, problems: own }),
      await consistentLevel(audited, given),
      ...(parts.regraded ? [await parts.regraded(audited, signal)] : []),
      ...(parts.replayed ? [await parts.replayed(audited, signal)] : []),
    ];
  };
  const trials = await Promise.all(
    finished.filter(only).map((trial) =>
      limit(async () => {
        const audit = { at: now, levels: await levelsOf(trial) };
        parts.observe(trial, audit);
        return { trial, audit };
      }),
    ),
  );
  checkBatch(batch, { ledger, definition, seen }, whole);
  return { whole, trials };
}
