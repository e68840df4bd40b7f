import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import type { CanonicalRequest } from '../gateway/replay/canonical-request.ts';
import {
  type Cassette,
  isCount,
  type RecordedExchange,
  type RecordedTrial,
  recordedExchange,
} from '../gateway/replay/cassette.ts';
import { repacked } from '../gateway/replay/cassette-file.ts';
import { listTrials } from '../ledger/find.ts';
import { refuseForeign } from '../ledger/foreign-batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import type { ModelExchange } from '../record/model-account.ts';
import { readRecord } from '../record/read-record.ts';
import { ModelConfig } from '../suite/model-config.ts';
import type { PlannedReplay, SuitePlan } from '../suite/plan.ts';

interface CassetteParts {
  ledger: Ledger;
  /** Receives each exchange that cannot be replayed, with the reason. */
  leftOut?: (why: string, exchange: UnrecordedExchange) => void;
}

export interface UnrecordedExchange extends Pick<ModelExchange, 'role' | 'failure'> {
  number: number;
  reason: string;
}

/**
 * The finished trials of a batch as a cassette. Each is read from the ledger when it is first needed.
 *
 * @param batch its key and its id
 * @param only the key of a trial, for a cassette of this trial alone
 */
export function ledgerCassette(
  parts: CassetteParts,
  batch: { key: number; id: string },
  only?: number,
): Cassette {
  const finished = finishedOf(parts.ledger, batch.key);
  const wanted = finished.filter(({ key }) => only === undefined || key === only);
  const trials = wanted.map((trial) => recordedTrial(parts, trial));
  return { name: batch.id, trials };
}

/**
 * The recording that a plan names. The recording of a fork has only the first exchanges of one trial. Throws
 * `RECORDING_GONE`.
 */
export function plannedCassette(ledger: Ledger, { batch, name, fork }: PlannedReplay): Cassette {
  if (!fork) {
    const cassette = ledgerCassette({ ledger }, { key: batch, id: name });
    if (cassette.trials.length === 0) throw gone(name);
    return cassette;
  }
  const forked = finishedOf(ledger, batch).find(({ key }) => key === fork.trial);
  if (!forked) throw gone(fork.name);
  return { name: fork.name, trials: [recordedTrial({ ledger }, forked, fork.at)] };
}

function finishedOf(ledger: Ledger, batch: number): StoredTrial[] {
  return listTrials(ledger.records, batch, 'all').filter(({ result }) => result !== undefined);
}

/** @param upTo the number of the last exchange to use */
function recordedTrial(
  { ledger, leftOut }: CassetteParts,
  { caseName, variant, ordinal, result = '' }: StoredTrial,
  upTo = Number.POSITIVE_INFINITY,
): RecordedTrial {
  const name = `${caseName} · ${variant} #${ordinal}`;
  const blob = (sha256: string) => ledger.blobs.tryReadClean(sha256);
  const read = () => {
    const { models } = readRecord(ledger.blobs.readClean(result), `the record of ${name}`);
    const intern = new Map<string, string>();
    return (models?.exchanges ?? []).flatMap((exchange: ModelExchange, index): RecordedExchange[] => {
      const number = index + 1;
      if (number > upTo || isCount(exchange)) return [];
      const recorded = recordedExchange(exchange, number, blob);
      if (typeof recorded !== 'string') return [{ ...recorded, request: shared(recorded.request, intern) }];
      const { role, failure } = exchange;
      leftOut?.(`${name}, request ${number}: ${recorded}`, { role, failure, number, reason: recorded });
      return [];
    });
  };
  let exchanges: RecordedExchange[] | undefined;
  return {
    label: { case: caseName, variant, ordinal },
    exchanges() {
      exchanges ??= read();
      return exchanges;
    },
  };
}

/** Each request repeats the conversation so far, so equal texts are kept in memory only once. */
function shared(request: CanonicalRequest, intern: Map<string, string>) {
  const one = (text: string): string => {
    const known = intern.get(text);
    if (known === undefined) intern.set(text, text);
    return known ?? text;
  };
  return repacked(request, one);
}

/** Throws `NOT_RECORDED` if trials of a batch asked models, and no exchange was kept that can be replayed. */
export function requireRecorded(ledger: Ledger, batch: { key: number; id: string }): void {
  refuseForeign(ledger.batches.byKey(batch.key), 'replayed');
  let left = 0;
  const leftOut = () => {
    left += 1;
  };
  const { trials } = ledgerCassette({ ledger, leftOut }, batch);
  if (trials.some((trial) => trial.exchanges().length > 0) || left === 0) return;
  throw inputError('NOT_RECORDED', `${batch.id} kept no exchanges with its models`, {
    hint: 'Set `record: full` for its models in offsite.yaml, and run it again.',
  });
}

function gone(name: string): OffsiteError {
  return inputError('RECORDING_GONE', `${name} is no longer in the ledger, and cannot be replayed`, {
    hint: 'Run the suite again from a batch that is still in the ledger.',
  });
}

/** The models of a batch as its recording has them: a gateway with these needs neither a model nor a key. */
export function recordedModels(
  { variants, judges }: Pick<SuitePlan, 'variants' | 'judges'>,
  batch: string,
): Record<string, ModelConfig> {
  const named = ModelConfig.parse({ replay: batch });
  const recorded = variants.flatMap(({ model, modelConfig, userModel }) => [
    ...(modelConfig ? [[model, recordedModel(modelConfig, batch)] as const] : []),
    ...(userModel === undefined ? [] : [[userModel, named] as const]),
  ]);
  return Object.fromEntries([...judges.map((judge) => [judge, named] as const), ...recorded]);
}

/** A configuration with only what a harness learns about its model, and how the model is recorded. */
export function recordedModel(
  { wire, aliases, contextWindow, maxOutputTokens, record }: ModelConfig,
  batch: string,
): ModelConfig {
  return ModelConfig.parse({ replay: batch, wire, aliases, contextWindow, maxOutputTokens, record });
}
