import type { ExportedTrial } from '../record/exported-trial.ts';
import { failuresOf, hasPassed } from '../record/failures.ts';
import { oneLine } from '../record/listing.ts';
import { commandsOf } from '../record/timeline.ts';
import { modelOf, usageOf } from '../record/usage.ts';
import type { TrialForm, Write } from './write-export.ts';

/**
 * A batch as a table with one row a trial: as CSV, and as Parquet. The names of the columns are stable, and
 * have their units. A number that was not measured has no value.
 */

interface Column {
  type: 'text' | 'count' | 'number' | 'flag' | 'time';
  /** For the reference. */
  about: string;
  of: (trial: ExportedTrial) => string | number | boolean | undefined;
}

/** How long a phase took, over all steps of the trial. */
const phaseMs = (name: string) => (trial: ExportedTrial) => {
  const own = trial.record.phases.filter((phase) => phase.name === name);
  return own.length === 0 ? undefined : own.reduce((sum, { durationMs }) => sum + durationMs, 0);
};
const usage = (field: keyof NonNullable<ReturnType<typeof usageOf>>) => (trial: ExportedTrial) =>
  usageOf(trial.record)?.[field];

export const columns: Readonly<Record<string, Column>> = {
  batch_id: { type: 'text', about: 'the batch', of: ({ batch }) => batch.id },
  suite: { type: 'text', about: 'its suite', of: ({ batch }) => batch.suite },
  service: { type: 'text', about: 'whom results are reported to', of: ({ batch }) => batch.service },
  run_id: { type: 'text', about: 'the run: a case with a variant', of: ({ run }) => run.id },
  case_id: { type: 'text', about: 'the case', of: ({ run }) => run.caseId },
  variant: { type: 'text', about: 'the variant', of: ({ run }) => run.variant },
  ordinal: { type: 'count', about: 'the repeat, from 0', of: ({ ordinal }) => ordinal },
  model: { type: 'text', about: 'its model', of: ({ record }) => modelOf(record) },
  harness: { type: 'text', about: 'its harness', of: ({ record }) => record.subject?.harness },
  harness_version: {
    type: 'text',
    about: 'as the harness reports it',
    of: ({ record }) => record.harnessVersion,
  },
  profile: { type: 'text', about: 'its profile', of: ({ record }) => record.subject?.profile },
  verdict: { type: 'text', about: '`passed`, `failed` or `void`', of: ({ record }) => record.verdict },
  passed: {
    type: 'flag',
    about: 'no value for a void trial, so that its mean is the pass rate',
    of: ({ record: { verdict } }) => (verdict === 'void' ? undefined : verdict === 'passed'),
  },
  cause: { type: 'text', about: 'whose fault it is', of: ({ record }) => record.cause?.kind },
  cause_phase: { type: 'text', about: 'where it happened', of: ({ record }) => record.cause?.phase },
  reason: {
    type: 'text',
    about: 'why it did not pass, in one line',
    of: ({ record }) => {
      const [reason = record.cause?.message] = record.cause ? [] : failuresOf(record);
      return record.verdict === 'passed' || reason === undefined ? undefined : oneLine(reason);
    },
  },
  score: {
    type: 'number',
    about: 'the mean of the scores of its judges and of the rewards of its tests',
    of: ({ record: { judgments = [] } }) => {
      const scores = judgments.flatMap(({ score }) => score ?? []);
      return scores.length === 0 ? undefined : scores.reduce((sum, one) => sum + one, 0) / scores.length;
    },
  },
  scores: {
    type: 'text',
    about: 'each of them by its name, as JSON',
    of: ({ record: { judgments = [] } }) => {
      const scores = judgments.flatMap(({ name, score }) => (score === undefined ? [] : [[name, score]]));
      return scores.length === 0 ? undefined : JSON.stringify(Object.fromEntries(scores));
    },
  },
  attempts: { type: 'count', about: 'attempts, with the one that counts', of: (one) => one.attempts.length },
  replayed: {
    type: 'flag',
    about: 'whether recorded answers took the place of models',
    of: ({ record }) => record.replay !== undefined,
  },
  started_at: { type: 'time', about: 'UTC', of: ({ record }) => record.startedAt },
  finished_at: { type: 'time', about: 'UTC', of: ({ record }) => record.finishedAt },
  duration_ms: {
    type: 'number',
    about: 'between these',
    of: ({ record }) => record.finishedAt - record.startedAt,
  },
  harness_ms: { type: 'number', about: 'the harness worked', of: phaseMs('harness') },
  verify_ms: { type: 'number', about: 'verify', of: phaseMs('verify') },
  validate_ms: { type: 'number', about: 'validator, tests and judges', of: phaseMs('validate') },
  model_ms: {
    type: 'number',
    about: "a request of the agent's was in flight",
    of: ({ record }) => record.models?.modelMs,
  },
  model_requests: {
    type: 'count',
    about: "the agent's requests to models",
    of: ({ record }) => record.models?.exchanges.filter(({ role }) => role === 'agent').length,
  },
  input_tokens: { type: 'count', about: "the agent's prompts, also cached ones", of: usage('inputTokens') },
  output_tokens: { type: 'count', about: 'the answers', of: usage('outputTokens') },
  cache_read_tokens: { type: 'count', about: 'part of the input', of: usage('cacheReadTokens') },
  cache_write_tokens: { type: 'count', about: 'part of the input', of: usage('cacheWriteTokens') },
  total_tokens: { type: 'count', about: 'input and output', of: usage('totalTokens') },
  cost_usd: { type: 'number', about: 'of these tokens, in US dollars', of: usage('costUsd') },
  commands: { type: 'count', about: 'commands of the agent', of: ({ record }) => commandsOf(record)?.length },
  files_changed: {
    type: 'count',
    about: 'files of the workspace that changed',
    of: ({ record }) => record.filesChangedCount ?? record.filesChanged?.length,
  },
  checks: {
    type: 'count',
    about: 'verify steps and validations',
    of: ({ record: { verifySteps = [], validations = [] } }) => verifySteps.length + validations.length,
  },
  checks_failed: {
    type: 'count',
    about: 'of these, those that failed',
    of: ({ record: { verifySteps = [], validations = [], judgments = [] } }) =>
      verifySteps.filter(({ exitCode }) => exitCode !== 0).length +
      validations.filter((one) => !hasPassed(one, judgments)).length,
  },
  commit: {
    type: 'text',
    about: "of the suite's repository, with `-dirty` if the suite's folder differed from it",
    of: ({ batch: { commit } }) => commit && `${commit.id}${commit.dirty ? '-dirty' : ''}`,
  },
};

const all = Object.entries(columns);

/** A table as CSV (RFC 4180), in UTF-8. Times are in ISO 8601. */
export async function csvForm(write: Write): Promise<TrialForm> {
  await write(`${Object.keys(columns).join(',')}\n`);
  return {
    add: (trial) => write(`${all.map(([, column]) => csvCell(column, trial)).join(',')}\n`),
    end: async () => undefined,
  };
}

function csvCell({ type, of }: Column, trial: ExportedTrial): string {
  const value = of(trial);
  if (value === undefined) return '';
  if (type === 'time') return timeOf(Number(value))?.toISOString() ?? '';
  const text = String(value);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows that are encoded together. */
const groupRows = 1_000;

const parquetTypes = {
  text: 'STRING',
  count: 'INT64',
  number: 'DOUBLE',
  flag: 'BOOLEAN',
  time: 'TIMESTAMP',
} as const;

/** A table as Parquet. What is encoded stays in memory: some hundred bytes a row. */
export async function parquetForm(write: Write): Promise<TrialForm> {
  const { ByteWriter, ParquetWriter, schemaFromColumnData } = await import('hyparquet-writer');
  const writer = new ByteWriter();
  const schema = schemaFromColumnData({
    columnData: all.map(([name, { type }]) => ({ name, type: parquetTypes[type], nullable: true, data: [] })),
  });
  const parquet = new ParquetWriter({ writer, schema, createdBy: 'offsite' });
  let rows: ReturnType<typeof parquetCell>[][] = [];
  const flush = () => {
    const columnData = all.map(([name], index) => ({ name, data: rows.map((row) => row[index]) }));
    if (rows.length > 0) parquet.write({ columnData, rowGroupSize: rows.length });
    rows = [];
  };
  return {
    async add(trial) {
      rows.push(all.map(([, { type, of }]) => parquetCell(type, of(trial))));
      if (rows.length >= groupRows) flush();
    },
    async end() {
      flush();
      parquet.finish();
      await write(writer.getBytes());
    },
  };
}

function parquetCell(type: Column['type'], value: ReturnType<Column['of']>) {
  if (value === undefined) return undefined;
  if (type === 'count') return BigInt(Math.round(Number(value)));
  return type === 'time' ? timeOf(Number(value)) : value;
}

/** Undefined for a time that no date can be, which old records may hold. */
function timeOf(ms: number): Date | undefined {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? undefined : date;
}
