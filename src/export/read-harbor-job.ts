import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { foreignLogs } from '../bounds/anyone.ts';
import { Usage } from '../contract/report.ts';
import { recordVersion, type TrialRecord } from '../record/trial-record.ts';
import { readFile } from '../suite/read-file.ts';
import {
  cutText,
  type ForeignLog,
  type ForeignTrial,
  firstEvents,
  foreignDocument,
  foreignTranscript,
  foreignValidation,
  modelAccount,
  textOf,
  timeIn,
  unreadableLog,
  verdictOf,
} from './foreign-log.ts';

/** Reads a job folder of Harbor, with the trajectories in ATIF that its trials have. */

const Text = z.string().nullish();
const Count = z.number().nullish();
const Timing = z.looseObject({ started_at: Text, finished_at: Text }).nullish();
const AgentResult = z
  .looseObject({
    n_input_tokens: Count,
    n_cache_tokens: Count,
    n_output_tokens: Count,
    cost_usd: Count,
    metadata: z
      .looseObject({
        offsite: z
          .looseObject({ variant: z.string(), ordinal: z.int().nonnegative(), usage: Usage.nullish() })
          .nullish(),
      })
      .nullish(),
  })
  .nullish();
const VerifierResult = z.looseObject({ rewards: z.record(z.string(), z.number()).nullish() }).nullish();
const Exception = z.looseObject({ exception_type: z.string(), exception_message: z.string() }).nullish();
const Result = z.looseObject({
  task_name: z.string(),
  trial_name: z.string(),
  source: Text,
  started_at: Text,
  finished_at: Text,
  agent_info: z.looseObject({
    name: z.string(),
    version: Text,
    model_info: z.looseObject({ name: z.string() }).nullish(),
  }),
  agent_result: AgentResult,
  verifier_result: VerifierResult,
  exception_info: Exception,
  agent_execution: Timing,
  verifier: Timing,
  step_results: z
    .array(
      z.looseObject({
        agent_result: AgentResult,
        verifier_result: VerifierResult,
        exception_info: Exception,
      }),
    )
    .nullish(),
});
type Result = z.infer<typeof Result>;

const Content = z.union([z.string(), z.array(z.looseObject({ text: Text }))]).nullish();
const Trajectory = z.looseObject({
  steps: z.array(
    z.looseObject({
      source: z.string(),
      timestamp: Text,
      message: Content,
      tool_calls: z
        .array(
          z.looseObject({
            tool_call_id: z.string(),
            function_name: z.string(),
            arguments: z.record(z.string(), z.unknown()),
          }),
        )
        .nullish(),
      observation: z
        .looseObject({
          results: z.array(
            z.looseObject({
              source_call_id: Text,
              content: Content,
              extra: z.looseObject({ error: Text }).nullish(),
            }),
          ),
        })
        .nullish(),
    }),
  ),
});

/** Throws `LOG_UNREADABLE`, and `FILE_UNREADABLE` for a link that leads out of the folder. */
export function readHarborJob(folder: string): ForeignLog {
  const names = readdirSync(folder);
  if (names.length > foreignLogs.count.files) throw unreadableLog(folder, 'it has too many entries');
  const trials = names.filter((name) => existsSync(join(folder, name, 'result.json'))).toSorted();
  const [first] = trials;
  if (first === undefined)
    throw unreadableLog(folder, 'no folder in it has a result.json, so it is no job of Harbor');
  const within = readdirSync(join(folder, first), { withFileTypes: true }).filter((each) =>
    each.isDirectory(),
  );
  if (within.some(({ name }) => existsSync(join(folder, first, name, 'result.json'))))
    throw unreadableLog(folder, `it holds jobs of Harbor: name one of them, such as ${join(folder, first)}`);
  const read = <Schema extends z.ZodType>(path: string, schema: Schema) => {
    const file = join(folder, path);
    const within = [realpathSync(folder)];
    const reading = { reach: { within, except: [] }, maximumBytes: foreignLogs.bytes.document };
    return foreignDocument(readFile(file, reading).content, schema, file);
  };
  const { source } = read(`${first}/result.json`, Result);
  const job = existsSync(join(folder, 'result.json'))
    ? read('result.json', z.looseObject({ started_at: Text }))
    : undefined;
  const name = folder.split('/').findLast((part) => part !== '') ?? 'job';
  return {
    suite: source ?? name,
    startedAt: timeIn(job?.started_at) ?? 0,
    trials: trialsOf(folder, trials, read),
  };
}

type Read = <Schema extends z.ZodType>(path: string, schema: Schema) => z.infer<Schema>;

async function* trialsOf(folder: string, names: readonly string[], read: Read): AsyncGenerator<ForeignTrial> {
  const counts = new Map<string, number>();
  for (const name of names) {
    const result = read(`${name}/result.json`, Result);
    const { task_name: caseId, agent_info: agent } = result;
    const own = result.agent_result?.metadata?.offsite;
    const variant =
      own?.variant ?? (agent.model_info ? `${agent.name}:${agent.model_info.name}` : agent.name);
    const key = JSON.stringify([caseId, variant]);
    const count = counts.get(key) ?? 0;
    counts.set(key, count + 1);
    const trajectory = `${name}/agent/trajectory.json`;
    const told = existsSync(join(folder, trajectory)) ? read(trajectory, Trajectory) : undefined;
    yield { caseId, variant, ordinal: own?.ordinal ?? count, result: resultOf(result, told) };
  }
}

function resultOf(result: Result, trajectory: z.infer<typeof Trajectory> | undefined): TrialRecord {
  const { agent_info: agent, agent_result, started_at, finished_at, agent_execution, verifier } = result;
  const startedAt = timeIn(started_at) ?? 0;
  const finishedAt = Math.max(startedAt, timeIn(finished_at) ?? startedAt);
  const phases = [
    { name: 'harness' as const, timing: agent_execution },
    { name: 'verify' as const, timing: verifier },
  ].flatMap(({ name, timing }) => {
    const [from, to] = [timeIn(timing?.started_at), timeIn(timing?.finished_at)];
    return from === undefined || to === undefined
      ? []
      : [{ name, startedAt: from, durationMs: Math.max(0, to - from) }];
  });
  const usage = reportedUsage(result);
  const model = agent.model_info?.name ?? 'unknown';
  const steps = firstEvents(trajectory?.steps ?? []);
  const requests = steps.reduce(
    (sum, { llm_call_count: count }) => sum + (typeof count === 'number' ? count : 0),
    0,
  );
  const prompt = textOf(steps.find(({ source }) => source === 'user')?.message);
  const unmeasured = usage === undefined || agent_result?.metadata?.offsite?.usage === null;
  return {
    version: recordVersion,
    ...gradingOf(result),
    startedAt,
    finishedAt,
    phases,
    subject: {
      caseName: result.task_name,
      ordinal: 0,
      model,
      harness: agent.name,
      image: 'unknown',
      network: 'unknown',
      prompt,
    },
    ...(agent.version && agent.version !== 'unknown' && { harnessVersion: agent.version }),
    ...transcriptOf(steps, startedAt),
    models: unmeasured ? undefined : modelAccount([{ role: 'agent', model, requests, usage }], 0),
    modelUnmeasured: unmeasured,
  };
}

function gradingOf(result: Result): Pick<TrialRecord, 'verdict' | 'cause' | 'validations'> {
  const steps = result.step_results ?? [];
  const rewards =
    result.verifier_result?.rewards ??
    steps.findLast((step) => step.verifier_result)?.verifier_result?.rewards;
  const exception = result.exception_info ?? steps.findLast((step) => step.exception_info)?.exception_info;
  const given = Object.entries(rewards ?? {});
  if (given.length === 0) {
    const { exception_type: type, exception_message: message } = exception ?? {
      exception_type: 'no reward',
      exception_message: 'its verifier gave none',
    };
    return {
      verdict: 'void',
      cause: { kind: 'unknown', phase: 'harness', message: cutText(`${type}: ${message}`) },
    };
  }
  // Harbor's main reward; of tasks without one, all have to be reached.
  const main = given.filter(([name]) => name === 'reward');
  const deciding = main.length > 0 ? main : given;
  const verdict = deciding.every(([, value]) => verdictOf(value) === 'passed') ? 'passed' : 'failed';
  const validations = given.map(([name, value], index) =>
    foreignValidation(name, index, verdictOf(value) === 'passed', `reward ${value}`),
  );
  return { verdict, validations };
}

/** Undefined if the log says nothing of it. */
function reportedUsage({ agent_result, step_results }: Result): Usage | undefined {
  const own = agent_result?.metadata?.offsite?.usage;
  if (own) return own;
  const parts = agent_result
    ? [agent_result]
    : (step_results ?? []).flatMap((step) => (step.agent_result ? [step.agent_result] : []));
  const sum = (field: 'n_input_tokens' | 'n_cache_tokens' | 'n_output_tokens' | 'cost_usd') => {
    const known = parts.flatMap((part) => part[field] ?? []);
    return known.length === 0 ? undefined : known.reduce((total, one) => total + one, 0);
  };
  const [inputTokens, outputTokens] = [sum('n_input_tokens'), sum('n_output_tokens')];
  if (inputTokens === undefined || outputTokens === undefined) return undefined;
  const [cacheReadTokens, costUsd] = [sum('n_cache_tokens'), sum('cost_usd')];
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    ...(cacheReadTokens !== undefined && { cacheReadTokens }),
    ...(costUsd !== undefined && { costUsd }),
  };
}

function transcriptOf(
  steps: readonly z.infer<typeof Trajectory>['steps'][number][],
  startedAt: number,
): Pick<TrialRecord, 'events' | 'trajectory'> {
  const transcript = foreignTranscript();
  let at = startedAt;
  for (const { source, timestamp, message, tool_calls, observation } of steps) {
    at = timeIn(timestamp) ?? at;
    const kind = source === 'user' ? 'user' : source === 'agent' ? 'message' : 'note';
    transcript.say(kind, at, textOf(message));
    // The first result of a call counts. A step can have as many as its document holds.
    const results = new Map(observation?.results.toReversed().map((one) => [one.source_call_id, one]));
    for (const { tool_call_id: id, function_name: name, arguments: input } of tool_calls ?? []) {
      const { content, extra } = results.get(id) ?? {};
      transcript.call({ name, input, output: textOf(content), at, error: extra?.error ?? undefined });
    }
  }
  return transcript.told();
}
