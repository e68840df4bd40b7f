import type { RunRecord, Trial } from '../../contract/record.ts';
import { trialIdentifier } from '../identifiers.ts';
import type { CompletedFacts } from '../store/platform-runs.ts';
import type { RunRow } from '../store/runs.ts';
import type { Stores } from '../store/stores.ts';
import { reportedCosts, sumOfCosts } from './costs.ts';
import { distributionOf } from './distribution.ts';
import { isoTime } from './iso-time.ts';

/**
 * A run record as pieces of JSON text. The large parts (setup, trials) are stored as JSON text, so they are
 * inserted without parsing, one at a time: a page of large trials is never in memory at once.
 *
 * @param inProgress the identifiers of the platform's trials that run in this process
 */
export function* runRecordPieces(
  run: RunRow,
  { trials, platform }: Pick<Stores, 'trials' | 'platform'>,
  inProgress: ReadonlySet<string>,
): Generator<string> {
  const summaries = trials.summaries(run.key);
  const ended = [...summaries.values()];
  const isFinished = ended.length === run.trials;
  const notEnded = Array.from({ length: run.trials }, (_, ordinal) => openTrial(run, ordinal, inProgress));
  const hasBegun = ended.length > 0 || notEnded.some(({ status }) => status === 'running');
  const fields: RunRecord = {
    id: run.id,
    batchId: run.batchId,
    status: isFinished ? 'completed' : hasBegun ? 'running' : 'queued',
    local: run.local,
    startedAt: isoTime(run.startedAt),
    finishedAt: isFinished ? isoTime(Math.max(...ended.map(({ endedAt }) => endedAt))) : undefined,
    definitionHash: run.definitionHash,
    ...(run.local ? { costs: reportedCosts(ended) } : platformFields(platform.facts(run.key))),
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
      JSON.stringify(notEnded[ordinal]);
  }
  yield ']}';
}

function openTrial(run: RunRow, ordinal: number, inProgress: ReadonlySet<string>): Trial {
  const id = trialIdentifier(run.id, ordinal);
  return { id, ordinal, status: inProgress.has(id) ? 'running' : 'queued' };
}

/** What a run of the platform has besides the fields of a reported one. */
function platformFields(facts: CompletedFacts[]) {
  return { ...versionsOf(facts), costs: sumOfCosts(facts.map(({ costs }) => costs)) };
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
