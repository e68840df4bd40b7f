import type { RunRecord, Trial } from '../../contract/record.ts';
import { trialIdentifier } from '../identifiers.ts';
import { type Piece, pieceSizes } from '../json-response.ts';
import type { Run, RunStore } from '../store/runs.ts';
import type { Stores } from '../store/stores.ts';
import type { CompletedFacts } from '../store/trials.ts';
import { distributionOf, reportedCosts, sumOfCosts } from './costs.ts';
import { setupPieces } from './setup.ts';

/**
 * A run record as pieces of JSON text. Trials are stored as JSON text, so they are inserted without parsing,
 * one at a time: a page of large trials is never in memory at once. A trial that an agent has claimed at
 * `now` (epoch milliseconds) is `running`, and so is one that this process runs: `inProgress` has its
 * identifier.
 */
export function* runRecordPieces(
  { key, batch, batchCase, taskIndex: _, ...run }: Run,
  { trials, definitions, now, inProgress }: RecordParts,
): Generator<Piece> {
  const claimed = trials.claimed(key, now);
  const summaries = trials.summaries(key);
  const ended = [...summaries.values()];
  const isFinished = ended.length === run.trials;
  const notEnded = Array.from({ length: run.trials }, (_, ordinal): Trial => {
    const id = trialIdentifier(run.id, ordinal);
    const isRunning = claimed.has(ordinal) || inProgress.has(id);
    return { id, ordinal, status: isRunning ? 'running' : 'queued' };
  });
  const hasBegun = ended.length > 0 || notEnded.some(({ status }) => status === 'running');
  const facts = run.local ? [] : trials.facts(key);
  const fields: RunRecord = {
    ...run,
    status: isFinished ? 'completed' : hasBegun ? 'running' : 'queued',
    startedAt: isoTime(run.startedAt),
    finishedAt: isFinished ? isoTime(Math.max(...ended.map(({ endedAt }) => endedAt))) : undefined,
    ...versionsOf(facts),
    costs: run.local ? reportedCosts(ended) : sumOfCosts(facts.map(({ costs }) => costs)),
    distribution: distributionOf(run.trials, ended),
    trials: undefined,
  };
  yield JSON.stringify(fields).slice(0, -1);
  // A definition is read as a whole.
  yield undefined;
  const suite = definitions.suite(batch);
  yield undefined;
  const definition = definitions.case(batchCase);
  yield ',"setup":';
  yield undefined;
  yield* setupPieces(suite, definition);
  yield ',"trials":[';
  for (let ordinal = 0; ordinal < run.trials; ordinal++) {
    if (ordinal > 0) yield ',';
    if (summaries.has(ordinal)) {
      for (const slice of trials.record(key, ordinal)) {
        yield slice;
        if (slice.length === pieceSizes.record) yield undefined;
      }
    } else yield JSON.stringify(notEnded[ordinal]);
  }
  yield ']}';
}

interface RecordParts {
  trials: Stores['trials'];
  definitions: RunStore['definitions'];
  now: number;
  inProgress: ReadonlySet<string>;
}

/** All versions that the trials of a run had: usually one of each. */
export function versionsOf(
  facts: readonly CompletedFacts[],
): Pick<RunRecord, 'harnessVersion' | 'profileVersion'> {
  return {
    harnessVersion: joined(facts.map(({ harnessVersion }) => harnessVersion)),
    profileVersion: joined(facts.map(({ profileVersion }) => profileVersion)),
  };
}

function joined(versions: readonly (string | undefined)[]): string | undefined {
  const known = new Set(versions.filter((version) => version !== undefined));
  return known.size === 0 ? undefined : [...known].join(', ');
}

/** Epoch milliseconds as an ISO 8601 date-time, as run records carry times. */
export function isoTime(epochMillis: number): string {
  return new Date(epochMillis).toISOString();
}
