import type { Ledger } from '../../ledger/ledger.ts';
import { failuresOf } from '../../record/failures.ts';
import { readRecord } from '../../record/read-record.ts';
import { commandsOf, timelineOf } from '../../record/timeline.ts';
import { comparisonTime, diffOf } from './changes.ts';
import type { Part, ShownTrial } from './story.ts';

/**
 * A trial as one JSON document, with the names that `offsite export` uses: either everything or the wanted
 * parts. Contents that the record keeps in blobs come with the paths of the blobs.
 */
export function trialDocument(shown: ShownTrial, wanted: readonly Part[], ledger: Ledger): unknown {
  const { batch, run, trial, record, details, read } = shown;
  const { verifySteps = [], validations = [], judgments = [], changes = [] } = record;
  const blob = (sha256: string | undefined) =>
    sha256 === undefined ? undefined : ledger.blobs.pathOf(sha256);
  const time = comparisonTime();
  const whole: Record<Part, () => object> = {
    verify: () => ({ verifySteps, validations, judgments }),
    diff: () => ({
      diff: changes.map((change) => ({
        ...diffOf(change, read, time),
        before: change.before && { ...change.before, blob: blob(change.before.content) },
        after: change.after && { ...change.after, blob: blob(change.after.content) },
      })),
    }),
    transcript: () => ({
      timeline: timelineOf(record),
      commands: commandsOf(record) ?? [],
      events: record.events ?? [],
      harnessOutput: record.harnessOutput,
      environment: record.environment?.map((step) => ({ ...step, blob: blob(step.log) })),
      services: record.services?.map((service) => ({ ...service, blob: blob(service.log) })),
    }),
    model: () => ({ models: record.models }),
  };
  const named = {
    batch: { id: batch.id, service: batch.service, suite: batch.suite, startedAt: batch.startedAt },
    run: { id: run.id, caseId: run.caseId, caseName: run.caseName, variant: run.variant },
    ordinal: trial.ordinal,
    verdict: record.verdict,
    failures: failuresOf(record),
    recordBlob: details.record,
  };
  if (wanted.length > 0) return Object.assign({}, named, ...wanted.map((part) => whole[part]()));
  const attempts = details.attempts.map(({ record: kept, ...attempt }) => ({
    ...attempt,
    ...(kept && { record: attemptRecord(ledger, kept.sha256), recordBlob: kept }),
  }));
  const { artifacts } = details;
  const gradings = shown.gradings.map(({ record: sha256, ...grading }) => ({
    ...grading,
    recordBlob: { sha256, path: ledger.blobs.pathOf(sha256) },
  }));
  return {
    ...named,
    attempts,
    gradings,
    audit: shown.audit,
    record,
    timeline: timelineOf(record),
    ...whole.diff(),
    artifacts,
  };
}

/** What an attempt that does not count had found; undefined if it cannot be read. */
function attemptRecord({ blobs }: Ledger, sha256: string): unknown {
  const kept = blobs.tryReadClean(sha256);
  return kept && readRecord(JSON.parse(kept.toString('utf8')), 'the record of an attempt');
}
