import type { Zip } from 'fflate';
import { clamped } from '../base/intervals.ts';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import { versionOf } from '../base/version.ts';
import type { Usage } from '../contract/report.ts';
import type { ExportedTrial } from '../record/exported-trial.ts';
import { failuresOf } from '../record/failures.ts';
import { modelOf, sumOfUsage, usageOf } from '../record/usage.ts';
import { mean } from '../stats/pass-rate.ts';
import {
  inspectEvents,
  inspectMessages,
  inspectUsage,
  isoTime,
  plainName,
  type Score,
  verdictScorer,
} from './inspect-transcript.ts';
import type { TrialForm, Write } from './write-export.ts';

/**
 * A batch as `.eval` logs of inspect_ai, one for each variant, because a log has one model. A log is a zip
 * with a JSON file for each sample: a sample is a case, its epochs are the trials. A trial is written as it
 * comes; only what lists show of it stays in memory.
 */

/** What the zip of a log can hold without an extension that the library does not write. */
const zipRoom = { bytes: 2 ** 32 - 1, files: 2 ** 16 - 1 };

/** @param open opens a file of the folder that the logs are written to */
export function inspectForm(open: (name: string) => Promise<Write>): TrialForm {
  const logs = new Map<string, Promise<OpenLog>>();
  return {
    async add(trial) {
      const { variant } = trial.run;
      const opened = logs.get(variant) ?? openLog(trial, (name) => open(`${name}-${logs.size}.eval`));
      logs.set(variant, opened);
      await addSample(await opened, trial);
    },
    async end() {
      for (const log of logs.values()) await endLog(await log);
    },
  };
}

interface OpenLog {
  first: ExportedTrial;
  /** Writes a file of the zip. */
  put(name: string, content: unknown): Promise<void>;
  /** Ends the zip. */
  close(): Promise<void>;
  summaries: Record<string, unknown>[];
  /** The values of each scorer, by the samples. */
  scores: Map<string, Map<string, number[]>>;
  epochs: Map<string, Set<number>>;
  /** By the role of the model, and its name. */
  usage: { role: string; model: string; usage: Usage }[];
  finishedAt: number;
  /** As the first trial names them that does: a void one may not. */
  model: string | undefined;
  harness: string | undefined;
}

async function openLog(first: ExportedTrial, open: (name: string) => Promise<Write>): Promise<OpenLog> {
  const { batch, run } = first;
  // The form of the names that inspect gives its logs.
  const write = await open(
    `${isoTime(batch.startedAt).replaceAll(/[:.]/g, '-')}_${plainName(batch.suite)}_${plainName(run.variant)}`,
  );
  const { Zip, ZipDeflate } = await import('fflate');
  let chunks: Uint8Array[] = [];
  const zip: Zip = new Zip((error, chunk) => {
    if (error) throw error;
    chunks.push(chunk);
  });
  const written = { bytes: 0, files: 0 };
  const flush = async () => {
    for (const chunk of chunks) written.bytes += chunk.length;
    if (written.bytes > zipRoom.bytes || written.files > zipRoom.files) throw tooLarge(run.variant);
    for (const chunk of chunks) await write(chunk);
    chunks = [];
  };
  return {
    first,
    async put(name, content) {
      const entry = new ZipDeflate(name, { level: 6 });
      entry.mtime = zipTime(batch.startedAt);
      zip.add(entry);
      entry.push(Buffer.from(JSON.stringify(content)), true);
      written.files += 1;
      await flush();
    },
    async close() {
      zip.end();
      await flush();
    },
    summaries: [],
    scores: new Map(),
    epochs: new Map(),
    usage: [],
    finishedAt: batch.startedAt,
    model: undefined,
    harness: undefined,
  };
}

async function addSample(log: OpenLog, trial: ExportedTrial): Promise<void> {
  const { run, record } = trial;
  const taken = log.epochs.get(run.caseId) ?? new Set<number>();
  log.epochs.set(run.caseId, taken);
  let epoch = trial.ordinal + 1;
  while (taken.has(epoch)) epoch += 1;
  taken.add(epoch);
  const used = usageByRole(record);
  log.usage.push(...used);
  log.finishedAt = Math.max(log.finishedAt, record.finishedAt);
  log.model ??= modelOf(record);
  log.harness ??= record.subject?.harness;
  const scores = scoresOf(trial);
  for (const [name, { value }] of Object.entries(scores ?? {})) {
    const number = value === 'C' ? 1 : value === 'I' ? 0 : value;
    if (typeof number !== 'number') continue;
    const ofScorer = log.scores.get(name) ?? new Map<string, number[]>();
    log.scores.set(name, ofScorer);
    ofScorer.set(run.caseId, [...(ofScorer.get(run.caseId) ?? []), number]);
  }
  const seconds = (record.finishedAt - record.startedAt) / 1_000;
  const shared = {
    id: run.caseId,
    epoch,
    target: '',
    scores,
    ...usageSums(used),
    metadata: metadataOf(trial),
    started_at: isoTime(record.startedAt),
    completed_at: isoTime(record.finishedAt),
    total_time: seconds,
    working_time: seconds,
    uuid: `${run.id}-${trial.ordinal}`,
    turn_count: record.turns ?? null,
  };
  const prompt = record.subject?.prompt ?? '';
  const messages = inspectMessages(record);
  const events = inspectEvents(record, scores?.[verdictScorer]);
  const error = scores === null ? whyVoid(trial) : null;
  const retries = trial.attempts.slice(0, -1).map((attempt) => errorOf(retryText(attempt)));
  const limit =
    record.harness?.ended === 'timed-out' ? { type: 'time', limit: record.harness.afterMs / 1_000 } : null;
  await log.put(`samples/${run.caseId}_epoch_${epoch}.json`, {
    ...shared,
    input: prompt,
    messages,
    events,
    output: outputOf(trial),
    error: error === null ? null : errorOf(error),
    error_retries: retries,
    limit,
    sandbox: { type: 'docker', config: null },
  });
  log.summaries.push({
    ...shared,
    input: prompt.slice(0, 1_000),
    metadata: { verdict: record.verdict },
    error,
    limit: limit?.type ?? null,
    retries: retries.length,
    completed: true,
    message_count: messages.length,
  });
}

async function endLog(log: OpenLog): Promise<void> {
  const { first, summaries, scores, epochs } = log;
  const { batch, run } = first;
  const id = `${batch.id}/${run.variant}`;
  const cases = [...epochs.keys()];
  const solver = log.harness ?? 'harness';
  const spec = {
    eval_id: id,
    run_id: batch.id,
    created: isoTime(batch.startedAt),
    // The viewer takes logs of one task_id for retries, and hides all but the last.
    task: batch.suite,
    task_id: id,
    task_version: 0,
    task_args: { variant: run.variant },
    solver,
    dataset: { name: batch.suite, samples: cases.length, sample_ids: cases, shuffled: false },
    model: log.model ?? 'none/none',
    model_args: {},
    tags: ['offsite'],
    config: { epochs: [...epochs.values()].reduce((most, { size }) => Math.max(most, size), 1) },
    packages: { offsite: versionOf() },
    metadata: { offsite: { batch: batch.id, service: batch.service, variant: run.variant } },
    scorers: [...scores.keys()].map((name) => ({ name })),
  };
  const start = {
    version: 2,
    eval: spec,
    plan: { name: 'plan', steps: [{ solver, params: {} }], config: {} },
  };
  await log.put('_journal/start.json', start);
  await log.put('_journal/summaries/1.json', summaries);
  await log.put('summaries.json', summaries);
  await log.put('reductions.json', reductionsOf(scores));
  await log.put('header.json', {
    ...start,
    status: 'success',
    results: {
      total_samples: summaries.length,
      completed_samples: summaries.filter((sample) => sample.scores !== null).length,
      scores: [...scores].map(([name, values]) =>
        scoreOf(name, [...values.values()].flat(), summaries.length),
      ),
    },
    stats: {
      started_at: isoTime(batch.startedAt),
      completed_at: isoTime(log.finishedAt),
      ...usageSums(log.usage),
    },
  });
  await log.close();
}

function scoreOf(name: string, values: readonly number[], samples: number) {
  const average = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - average) ** 2, 0);
  const stderr = values.length > 1 ? Math.sqrt(squares / (values.length - 1) / values.length) : 0;
  const metric = (metricName: string, value: number) => [metricName, { name: metricName, value, params: {} }];
  return {
    name,
    scorer: name,
    scored_samples: values.length,
    unscored_samples: samples - values.length,
    params: {},
    metrics: Object.fromEntries([
      metric(name === verdictScorer ? 'accuracy' : 'mean', average),
      metric('stderr', stderr),
    ]),
  };
}

function reductionsOf(scores: OpenLog['scores']) {
  return [...scores].map(([scorer, ofCases]) => ({
    scorer,
    reducer: 'mean',
    samples: [...ofCases].map(([id, values]) => ({ sample_id: id, value: mean(values) })),
  }));
}

/** Null for a void trial, which is a sample with an error. */
function scoresOf({ record }: ExportedTrial): Record<string, Score> | null {
  const { verdict, judgments = [] } = record;
  if (verdict === 'void') return null;
  const judged = judgments.flatMap(({ name, score, choice, reason }): [string, Score][] => {
    const value = score ?? choice;
    const key = name === verdictScorer ? `${name} (judgment)` : name;
    return value === undefined ? [] : [[key, { value, explanation: reason ?? null }]];
  });
  const explanation = failuresOf(record).join('\n');
  return {
    [verdictScorer]: { value: verdict === 'passed' ? 'C' : 'I', explanation: explanation || null },
    ...Object.fromEntries(judged),
  };
}

function metadataOf({ run, ordinal, attempts, record }: ExportedTrial) {
  const { verdict, cause, harnessVersion, filesChanged, replay } = record;
  return {
    verdict,
    run: run.id,
    case_name: run.caseName,
    ordinal,
    attempts: attempts.length,
    ...(cause && { cause: { kind: cause.kind, phase: cause.phase, message: cause.message } }),
    ...(harnessVersion !== undefined && { harness_version: harnessVersion }),
    ...(filesChanged && { files_changed: filesChanged }),
    ...(replay && { replay_of: replay.of }),
    ...(isUnmeasured(record) && { unmeasured: true }),
  };
}

function whyVoid({ record: { cause } }: ExportedTrial): string {
  return cause ? `${cause.kind}, in ${cause.phase}: ${cause.message}` : 'it has no verdict';
}

function retryText({ ending, cause }: ExportedTrial['attempts'][number]): string {
  const { message = ending ?? 'it did not end' } = (cause ?? {}) as { message?: unknown };
  return String(message);
}

function errorOf(message: string) {
  return { message, traceback: '', traceback_ansi: '' };
}

function outputOf({ record }: ExportedTrial) {
  const { finalMessage } = record;
  const model = modelOf(record) ?? '';
  if (finalMessage === undefined) return { model, choices: [] };
  const message = { role: 'assistant', content: finalMessage, source: 'generate' };
  return { model, completion: finalMessage, choices: [{ message, stop_reason: 'stop' }] };
}

/** What is not known of a model is left out: there, each number is one. */
function usageByRole(record: ExportedTrial['record']): OpenLog['usage'] {
  if (isUnmeasured(record)) return [];
  const parts = record.models?.usage ?? [];
  return parts.map(({ role, model, answeredBy, usage }) => ({ role, model: answeredBy ?? model, usage }));
}

function isUnmeasured(record: ExportedTrial['record']): boolean {
  const usage = usageOf(record);
  return usage?.inputTokens === undefined || usage.outputTokens === undefined;
}

function usageSums(parts: OpenLog['usage']) {
  const by = (key: 'role' | 'model') =>
    Object.fromEntries(
      [...Map.groupBy(parts, (part) => part[key])].map(([name, own]) => [
        name,
        inspectUsage(sumOfUsage(own.map(({ usage }) => usage))),
      ]),
    );
  return { model_usage: by('model'), role_usage: by('role') };
}

/** A time that a zip can have. */
function zipTime(ms: number): Date {
  return new Date(clamped(ms, Date.UTC(1980, 0, 2), Date.UTC(2099, 0, 1)));
}

function tooLarge(variant: string): OffsiteError {
  return inputError(
    'EXPORT_TOO_LARGE',
    `the log of ${variant} is larger than a zip without extensions can be`,
    { hint: 'Export part of it, for example with --only failed, or use --json.' },
  );
}
