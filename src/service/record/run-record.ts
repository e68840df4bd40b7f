import type { RunRecord } from '../../contract/record.ts';
import { trialIdentifier } from '../identifiers.ts';
import type { RunRow } from '../store/runs.ts';
import type { Stores } from '../store/stores.ts';
import { costsOf, distributionOf } from './distribution.ts';

/**
 * A run record as pieces of JSON text. The large parts (setup, trials) are stored as JSON text, so they are
 * inserted without parsing, one at a time: a page of large trials is never in memory at once. A trial that an
 * agent has claimed at `now` (epoch milliseconds) is `running`.
 */
export function* runRecordPieces(
  run: RunRow,
  { trials, leases }: Pick<Stores, 'trials' | 'leases'>,
  now: number,
): Generator<string> {
  const claimed = leases.held(run.key, now);
  const summaries = trials.summaries(run.key);
  const ended = [...summaries.values()];
  const isFinished = ended.length === run.trials;
  const fields: RunRecord = {
    id: run.id,
    batchId: run.batchId,
    status: isFinished ? 'completed' : ended.length + claimed.size > 0 ? 'running' : 'queued',
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
      JSON.stringify({
        id: trialIdentifier(run.id, ordinal),
        ordinal,
        status: claimed.has(ordinal) ? 'running' : 'queued',
      });
  }
  yield ']}';
}

function isoTime(epochMillis: number): string {
  return new Date(epochMillis).toISOString();
}
