import { createHash } from 'node:crypto';
import { versionOf } from '../base/version.ts';
import type { Usage } from '../contract/report.ts';
import type { ExportedTrial } from '../record/exported-trial.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { modelOf, sumOfUsage, usageOf } from '../record/usage.ts';
import { conversationOf, isoTime, plainName, type Turn } from './inspect-transcript.ts';
import type { TrialForm } from './write-export.ts';

/**
 * A batch as a job folder of Harbor, with a folder for each trial: its result, its trajectory in ATIF (the
 * Agent Trajectory Interchange Format), and what its checks printed. `harbor view` shows the folder above.
 */

type Json = Record<string, unknown>;

/** @param put writes a file of the job's folder; its path has folders */
export function harborForm(put: (path: string, text: string) => Promise<void>): TrialForm {
  const names = new Set<string>();
  const done: Done[] = [];
  let batch: ExportedTrial['batch'] | undefined;
  const putJson = (path: string, content: unknown) => put(path, `${JSON.stringify(content, null, 2)}\n`);
  return {
    async add(trial) {
      const name = nameOf(trial, names);
      const { run, ordinal, record } = trial;
      const { verdict, finishedAt } = record;
      batch = trial.batch;
      const facts = { agent: agentOf(record), usage: usageOf(record) ?? {} };
      done.push({ name, caseId: run.caseId, ordinal, verdict, finishedAt, ...facts });
      await putJson(`${name}/config.json`, configOf(trial, name));
      await putJson(`${name}/result.json`, resultOf(trial, name));
      await putJson(`${name}/agent/trajectory.json`, trajectoryOf(trial));
      await put(`${name}/verifier/test-stdout.txt`, checksText(record));
      const reward = rewardOf(record);
      if (reward) await put(`${name}/verifier/reward.txt`, `${reward.reward}\n`);
    },
    async end() {
      if (!batch) return;
      await putJson('config.json', jobConfig(batch, done));
      await putJson('result.json', jobResult(batch, done));
    },
  };
}

/** What sums need of a trial. */
interface Done extends Pick<TrialRecord, 'verdict' | 'finishedAt'> {
  name: string;
  caseId: string;
  ordinal: number;
  agent: Agent;
  usage: Usage;
}

/** The folder of a job below the folder of all jobs. */
export function jobName({ suite, id }: { suite: string; id: string }): string {
  return `${plainName(suite)}__${plainName(id)}`;
}

function nameOf({ run, ordinal }: ExportedTrial, taken: Set<string>): string {
  const plain = `${plainName(run.caseId)}__${plainName(run.variant)}-${ordinal}`;
  const name = taken.has(plain) ? `${plain}-${taken.size}` : plain;
  taken.add(name);
  return name;
}

function configOf({ batch, run, record }: ExportedTrial, name: string): Json {
  return {
    task: { path: run.caseId, source: batch.suite },
    trial_name: name,
    trials_dir: jobName(batch),
    agent: agentOf(record),
    job_id: uuidOf(batch.id),
  };
}

type Agent = ReturnType<typeof agentOf>;

function agentOf(record: TrialRecord) {
  return { name: record.subject?.harness ?? 'harness', model_name: modelOf(record) ?? null };
}

function resultOf(trial: ExportedTrial, name: string): Json {
  const { batch, run, ordinal, record } = trial;
  const { cause, harness, harnessVersion = 'unknown', startedAt, finishedAt, phases } = record;
  const agent = agentOf(record);
  const timing = (phase: string) => {
    const own = phases.filter((one) => one.name === phase);
    const [first, last] = [own[0], own.at(-1)];
    if (!first || !last) return null;
    return { started_at: isoTime(first.startedAt), finished_at: isoTime(last.startedAt + last.durationMs) };
  };
  const usage = usageOf(record);
  const reward = rewardOf(record);
  return {
    id: uuidOf(`${batch.id}/${run.id}/${ordinal}`),
    task_name: run.caseId,
    trial_name: name,
    trial_uri: `offsite:${batch.id}/${run.id}/${ordinal}`,
    task_id: { path: run.caseId },
    source: batch.suite,
    task_checksum: '',
    config: configOf(trial, name),
    agent_info: {
      name: agent.name,
      version: harnessVersion,
      model_info: agent.model_name === null ? null : { name: agent.model_name, provider: null },
    },
    agent_result: {
      n_input_tokens: usage?.inputTokens ?? null,
      n_cache_tokens: usage?.cacheReadTokens ?? null,
      n_output_tokens: usage?.outputTokens ?? null,
      cost_usd: usage?.costUsd ?? null,
      metadata: { offsite: { run: run.id, variant: run.variant, ordinal, usage: usage ?? null } },
    },
    verifier_result: reward && { rewards: reward },
    exception_info: exceptionOf(cause, harness, finishedAt),
    started_at: isoTime(startedAt),
    finished_at: isoTime(finishedAt),
    environment_setup: timing('sandbox'),
    agent_execution: timing('harness'),
    verifier: timing('verify'),
  };
}

/** A void trial has no reward. */
function rewardOf({ verdict }: TrialRecord): { reward: 0 | 1 } | null {
  return verdict === 'void' ? null : { reward: verdict === 'passed' ? 1 : 0 };
}

function exceptionOf(cause: TrialRecord['cause'], harness: TrialRecord['harness'], at: number): Json | null {
  const exception = (type: string, message: string) => ({
    exception_type: type,
    exception_message: message,
    exception_traceback: cause?.output ?? '',
    occurred_at: isoTime(at),
  });
  if (cause) return exception(cause.kind, `in ${cause.phase}: ${cause.message}`);
  // Harbor's name for it.
  if (harness?.ended !== 'timed-out') return null;
  return exception('AgentTimeoutError', `ended after ${Math.round(harness.afterMs / 1_000)} s`);
}

/** The trajectory in ATIF. Requests to models count for the first step of the agent after they began. */
function trajectoryOf({ batch, run, ordinal, record }: ExportedTrial): Json {
  const exchanges = (record.models?.exchanges ?? []).filter(({ role }) => role === 'agent');
  const turns = conversationOf(record);
  const last = turns.findLastIndex(({ kind }) => kind === 'agent' || kind === 'call');
  let counted = 0;
  const steps = turns.map((turn, index): Json => {
    const place = { step_id: index + 1, timestamp: isoTime(turn.at) };
    if (turn.kind === 'user') return { ...place, source: 'user', message: turn.text };
    if (turn.kind === 'note') return { ...place, source: 'system', message: turn.text };
    const from = counted;
    while ((exchanges[counted]?.startedAt ?? Number.POSITIVE_INFINITY) <= turn.at) counted += 1;
    if (index === last) counted = exchanges.length;
    const own = exchanges.slice(from, counted).map(({ usage }) => usage);
    return { ...place, source: 'agent', ...said(turn), ...(own.length > 0 && metricsOf(own)) };
  });
  const usage = usageOf(record) ?? {};
  const agent = agentOf(record);
  return {
    schema_version: 'ATIF-v1.7',
    session_id: `${batch.id}/${run.id}/${ordinal}`,
    agent: { name: agent.name, version: record.harnessVersion ?? 'unknown', model_name: agent.model_name },
    steps: steps.length > 0 ? steps : [{ step_id: 1, source: 'system', message: 'nothing was recorded' }],
    final_metrics: {
      total_prompt_tokens: usage.inputTokens ?? null,
      total_completion_tokens: usage.outputTokens ?? null,
      total_cached_tokens: usage.cacheReadTokens ?? null,
      total_cost_usd: usage.costUsd ?? null,
      total_steps: Math.max(1, steps.length),
    },
    extra: { exported_by: `offsite ${versionOf()}`, variant: run.variant },
  };
}

function said(turn: Turn): Json {
  if (turn.kind !== 'call') return { message: turn.text };
  const { key, name, input, output, error } = turn;
  return {
    message: '',
    tool_calls: [{ tool_call_id: key, function_name: name, arguments: input }],
    observation: {
      results: [{ source_call_id: key, content: output, ...(error !== undefined && { extra: { error } }) }],
    },
  };
}

function metricsOf(parts: readonly Usage[]): Json {
  const {
    inputTokens = null,
    outputTokens = null,
    cacheReadTokens = null,
    costUsd = null,
  } = sumOfUsage(parts);
  const metrics = { prompt_tokens: inputTokens, completion_tokens: outputTokens };
  return {
    metrics: { ...metrics, cached_tokens: cacheReadTokens, cost_usd: costUsd },
    llm_call_count: parts.length,
  };
}

function checksText({ verifySteps = [], validations = [] }: TrialRecord): string {
  return [
    ...verifySteps.map(({ command, exitCode, output }) => `$ ${command}\n${output}\nexit code ${exitCode}\n`),
    ...validations.map(({ name, status, message = '' }) => `${name}: ${status ?? 'failed'}\n${message}\n`),
  ].join('\n');
}

function jobConfig(batch: ExportedTrial['batch'], done: readonly Done[]): Json {
  const agents = new Map(done.map(({ agent }) => [JSON.stringify(agent), agent]));
  const tasks = new Set(done.map(({ caseId }) => caseId));
  return {
    job_name: jobName(batch),
    jobs_dir: '.',
    n_attempts: done.reduce((most, { ordinal }) => Math.max(most, ordinal + 1), 1),
    agents: [...agents.values()],
    tasks: [...tasks].map((path) => ({ path, source: batch.suite })),
  };
}

function jobResult(batch: ExportedTrial['batch'], done: readonly Done[]): Json {
  const finishedAt = done.reduce((last, trial) => Math.max(last, trial.finishedAt), batch.startedAt);
  const usage = sumOfUsage(done.map((trial) => trial.usage));
  const evals = Map.groupBy(done, ({ agent: { name, model_name } }) =>
    [name, model_name, batch.suite].filter((part) => part !== null).join('__'),
  );
  return {
    id: uuidOf(batch.id),
    started_at: isoTime(batch.startedAt),
    finished_at: isoTime(finishedAt),
    n_total_trials: done.length,
    stats: {
      n_completed_trials: done.length,
      n_errored_trials: namesOf(done, 'void').length,
      n_input_tokens: usage.inputTokens ?? null,
      n_cache_tokens: usage.cacheReadTokens ?? null,
      n_output_tokens: usage.outputTokens ?? null,
      cost_usd: usage.costUsd ?? null,
      evals: Object.fromEntries([...evals].map(([key, own]) => [key, evalStats(own)])),
    },
  };
}

function evalStats(own: readonly Done[]): Json {
  const [passed, failed, voided] = [namesOf(own, 'passed'), namesOf(own, 'failed'), namesOf(own, 'void')];
  const scored = passed.length + failed.length;
  return {
    n_trials: scored,
    n_errors: voided.length,
    metrics: scored === 0 ? [] : [{ mean: passed.length / scored }],
    reward_stats: { reward: { 1: passed, 0: failed } },
    exception_stats: voided.length === 0 ? {} : { void: voided },
  };
}

function namesOf(done: readonly Done[], verdict: TrialRecord['verdict']): string[] {
  return done.filter((trial) => trial.verdict === verdict).map(({ name }) => name);
}

/** The same in each export. */
function uuidOf(key: string): string {
  const hex = createHash('sha256').update(key).digest('hex');
  const [, first, second, third, fourth, last] = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(hex) ?? [];
  return `${first}-${second}-8${third}-8${fourth}-${last}`;
}
