import type { RunRecord } from '../../contract/record.ts';
import { trialIdentifier } from '../identifiers.ts';
import type { Piece } from '../json-response.ts';
import type { RunRow } from '../store/runs.ts';
import type { TrialStore } from '../store/trials.ts';
import { costsOf, distributionOf } from './distribution.ts';

/**
 * A run record as pieces of JSON text. The large parts (setup, trials) are stored as JSON text, so they are
 * inserted without parsing, one at a time: a page of large trials is never in memory at once.
 */
export function* runRecordPieces(run: RunRow, trials: TrialStore): Generator<Piece> {
  const summaries = trials.summaries(run.key);
  const ended = [...summaries.values()];
  const isFinished = ended.length === run.trials;
  const fields: RunRecord = {
    id: run.id,
    batchId: run.batchId,
    status: ended.length === 0 ? 'queued' : isFinished ? 'completed' : 'running',
    local: run.local,
    startedAt: isoTime(run.startedAt),
    finishedAt: isFinished ? isoTime(Math.max(...ended.map(({ endedAt }) => endedAt))) : undefined,
    definitionHash: run.definitionHash,
    costs: costsOf(ended),
    distribution: distributionOf(run.trials, ended),
  };
  const texts = {
    case: run.caseJson,
    suite: run.suiteJson,
    variant: run.variantJson,
    ...(run.triggerJson && { trigger: run.triggerJson }),
    setup: run.setupJson,
  };
  yield JSON.stringify(fields).slice(0, -1);
  for (const [name, text] of Object.entries(texts)) yield `,"${name}":${text}`;
  yield ',"trials":[';
  for (let ordinal = 0; ordinal < run.trials; ordinal++) {
    if (ordinal > 0) yield ',';
    yield (summaries.has(ordinal) ? trials.record(run.key, ordinal) : undefined) ??
      JSON.stringify({ id: trialIdentifier(run.id, ordinal), ordinal, status: 'queued' });
  }
  yield ']}';
}

function isoTime(epochMillis: number): string {
  return new Date(epochMillis).toISOString();
}
