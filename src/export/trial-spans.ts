import { createHash } from 'node:crypto';
import { clamped } from '../base/intervals.ts';
import type { ExportedTrial } from '../record/exported-trial.ts';
import { failuresOf, reachesThreshold } from '../record/failures.ts';
import { commandsOf, hasFailed, type TimelineKind, timelineOf } from '../record/timeline.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { usageOf } from '../record/usage.ts';

/**
 * Spans of OpenTelemetry with the names of its semantic conventions for generative AI
 * (https://opentelemetry.io/docs/specs/semconv/gen-ai/, in development). Attributes that the conventions do
 * not name begin with `offsite.`. Prompts, outputs and contents are left out: they are for those who may read
 * the ledger.
 */

/** Spans in one request: far below what receivers take. */
const together = 500;

/**
 * Yields the spans of trials as requests of OTLP in JSON, one after the other. The batch's own span comes
 * last.
 *
 * @param redact removes known secrets from a text
 */
export function* spanRequests(
  trials: Iterable<ExportedTrial>,
  redact: (text: string) => string,
): Generator<Uint8Array> {
  const request = (spans: Span[]): Uint8Array => {
    const resource = { attributes: attributesOf({ 'service.name': 'offsite' }) };
    const scopeSpans = [{ scope: { name: 'offsite' }, spans }];
    return Buffer.from(redact(JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] })));
  };
  let waiting: Span[] = [];
  let last: { batch: ExportedTrial['batch']; finishedAt: number } | undefined;
  for (const trial of trials) {
    waiting.push(...trialSpans(trial));
    const finishedAt = Math.max(last?.finishedAt ?? 0, trial.record.finishedAt);
    last = { batch: trial.batch, finishedAt };
    for (; waiting.length >= together; waiting = waiting.slice(together))
      yield request(waiting.slice(0, together));
  }
  if (last) yield request([...waiting, batchSpan(last.batch, last.finishedAt)]);
}

/** A span as OTLP has it in JSON. */
type Span = ReturnType<typeof spanOf>;
type Attributes = Record<string, string | number | boolean | undefined>;

interface SpanFacts {
  name: string;
  /** What makes the span's id the same in each export. */
  key: string;
  kind?: number | undefined;
  /** Epoch milliseconds. */
  startedAt: number;
  finishedAt: number;
  attributes: Attributes;
  /** Why it failed; undefined if it did not. */
  failure?: string | undefined;
  events?: { name: string; at: number; attributes: Attributes }[];
  links?: { traceId: string; spanId: string; flags: number }[];
}

/** The numbers of OTLP. */
const kinds = { internal: 1, client: 3 };
const failedStatus = 2;
const sampled = 0x101;

/** The root of a batch's trace. Each trial has a trace of its own, which links to it. */
function batchSpan(batch: ExportedTrial['batch'], finishedAt: number): Span {
  return spanOf(traceId(batch.id), undefined, {
    name: `batch ${batch.suite}`,
    key: batch.id,
    startedAt: batch.startedAt,
    finishedAt,
    attributes: {
      'offsite.batch.id': batch.id,
      'offsite.suite': batch.suite,
      'offsite.service': batch.service,
    },
  });
}

/**
 * A trial as a trace: the trial, its phases, its attempts that do not count, and in the phases the commands,
 * tools, requests to models and checks. Two exports of the same trial give the same ids.
 */
function trialSpans(trial: ExportedTrial): Span[] {
  const { batch, run, ordinal, record } = trial;
  const key = `${batch.id}/${run.id}/${ordinal}`;
  const trace = traceId(key);
  const root = spanOf(trace, undefined, {
    name: `trial ${run.caseName}`,
    key,
    startedAt: record.startedAt,
    finishedAt: record.finishedAt,
    attributes: {
      'offsite.batch.id': batch.id,
      'offsite.suite': batch.suite,
      'offsite.run.id': run.id,
      'offsite.case': run.caseName,
      'offsite.variant': run.variant,
      'offsite.trial.ordinal': ordinal,
      'offsite.trial.verdict': record.verdict,
      'offsite.trial.attempts': trial.attempts.length,
      'offsite.cause.kind': record.cause?.kind,
      'offsite.cause.phase': record.cause?.phase,
    },
    failure: record.verdict === 'passed' ? undefined : whyNot(record),
    events: evaluationsOf(record),
    links: [{ traceId: traceId(batch.id), spanId: spanId(batch.id), flags: sampled }],
  });
  const phases = record.phases.map((phase) =>
    spanOf(trace, root, {
      name: phase.name === 'harness' ? `invoke_agent ${record.subject?.harness ?? 'harness'}` : phase.name,
      key: [key, phase.step, phase.name].filter((part) => part !== undefined).join('/'),
      startedAt: phase.startedAt,
      finishedAt: phase.startedAt + phase.durationMs,
      attributes: {
        'offsite.phase': phase.name,
        'offsite.step': phase.step,
        ...(phase.name === 'harness' && agentAttributes(record, phase.step === undefined)),
      },
      failure: hasFailed(phase, record) ? record.cause?.message : undefined,
    }),
  );
  // If a trial has several steps, each step may have a phase of this name.
  const parentOf = (name: string, at: number) => {
    const begun = record.phases.findLastIndex((phase) => phase.name === name && phase.startedAt <= at);
    return phases[begun] ?? phases[record.phases.findIndex((phase) => phase.name === name)] ?? root;
  };
  return [
    root,
    ...phases,
    ...timelineOf(record).flatMap(({ kind, index, at, until = at }) => {
      const described = describe(kind, index, record);
      if (!described) return [];
      const { phase, ...what } = described;
      const facts = { key: `${key}/${kind}/${index}`, startedAt: at, finishedAt: until, ...what };
      return [spanOf(trace, parentOf(phase, at), facts)];
    }),
    // The last one is the trial itself.
    ...trial.attempts.slice(0, -1).map((attempt) => spanOf(trace, root, attemptFacts(attempt, key))),
  ];
}

function whyNot(record: TrialRecord): string {
  return record.cause?.message ?? failuresOf(record)[0] ?? record.verdict;
}

/** @param isWhole whether the trial's whole usage belongs to this phase */
function agentAttributes(record: TrialRecord, isWhole: boolean): Attributes {
  const usage = usageOf(record);
  return {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': record.subject?.harness,
    'gen_ai.agent.version': record.harnessVersion,
    'gen_ai.request.model': record.subject?.model,
    ...(isWhole && usageAttributes(usage ?? {})),
    'offsite.harness.ended': record.harness?.ended,
  };
}

function usageAttributes(usage: NonNullable<ReturnType<typeof usageOf>>): Attributes {
  return {
    'gen_ai.usage.input_tokens': usage.inputTokens,
    'gen_ai.usage.output_tokens': usage.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': usage.cacheReadTokens,
    'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteTokens,
    'offsite.cost.usd': usage.costUsd,
  };
}

type Described = Pick<SpanFacts, 'name' | 'kind' | 'attributes' | 'failure'> & { phase: string };

/** What happened in the phases that is a span: commands, tools, requests to models, and verify steps. */
function describe(kind: TimelineKind, index: number, record: TrialRecord): Described | undefined {
  const tool = { 'gen_ai.operation.name': 'execute_tool' };
  const exited = (code = 0) => (code === 0 ? undefined : `exited ${code}`);
  if (kind === 'command') {
    const exitCode = commandsOf(record)?.[index]?.exitCode;
    const attributes = { ...tool, 'gen_ai.tool.name': 'shell', 'process.exit.code': exitCode };
    return { phase: 'harness', name: 'execute_tool shell', attributes, failure: exited(exitCode) };
  }
  if (kind === 'verify') {
    const exitCode = record.verifySteps?.[index]?.exitCode;
    const attributes = { 'process.exit.code': exitCode };
    return { phase: 'verify', name: `verify step ${index + 1}`, attributes, failure: exited(exitCode) };
  }
  const event = record.events?.[index];
  if (kind === 'tool' && event?.kind === 'tool')
    return {
      phase: 'harness',
      name: `execute_tool ${event.name}`,
      attributes: { ...tool, 'gen_ai.tool.name': event.name },
      failure: event.failed ? 'the tool failed' : undefined,
    };
  const exchange = record.models?.exchanges[index];
  if (kind !== 'exchange' || !exchange) return undefined;
  const { role, model, startedAt, firstByteAt, failure } = exchange;
  return {
    phase: role === 'judge' ? 'validate' : 'harness',
    name: `chat ${model}`,
    kind: kinds.client,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': exchange.wire,
      'gen_ai.request.model': model,
      'gen_ai.response.model': exchange.answeredBy,
      'http.response.status_code': exchange.status,
      ...usageAttributes(exchange.usage),
      'offsite.model.role': role,
      'offsite.model.failed_tries': exchange.failedTries.length,
      'offsite.model.first_byte_ms': firstByteAt === undefined ? undefined : firstByteAt - startedAt,
    },
    failure,
  };
}

function attemptFacts(attempt: ExportedTrial['attempts'][number], key: string): SpanFacts {
  const { number, startedAt, endedAt = startedAt, ending } = attempt;
  const { kind, message } = (attempt.cause ?? {}) as { kind?: unknown; message?: unknown };
  return {
    name: `attempt ${number}`,
    key: `${key}/attempt/${number}`,
    startedAt,
    finishedAt: endedAt,
    attributes: {
      'offsite.attempt.number': number,
      'offsite.attempt.ending': ending,
      'offsite.cause.kind': kind === undefined ? undefined : String(kind),
    },
    failure: message === undefined ? (ending ?? 'it did not end') : String(message),
  };
}

/** Each check as the conventions' event of an evaluation. */
function evaluationsOf({ validations = [], judgments = [], finishedAt }: TrialRecord) {
  const event = (attributes: Attributes) => ({
    name: 'gen_ai.evaluation.result',
    at: finishedAt,
    attributes,
  });
  return [
    ...validations.map(({ name, exitCode, message }) =>
      event({
        'gen_ai.evaluation.name': name,
        'gen_ai.evaluation.score.label': exitCode === 0 ? 'pass' : exitCode === undefined ? 'void' : 'fail',
        'gen_ai.evaluation.explanation': message,
      }),
    ),
    ...judgments.map((judgment) =>
      event({
        'gen_ai.evaluation.name': judgment.name,
        'gen_ai.evaluation.score.value': judgment.score,
        'gen_ai.evaluation.score.label': reachesThreshold(judgment) ? 'pass' : 'fail',
        'gen_ai.evaluation.explanation': judgment.reason,
        'error.type': judgment.error,
      }),
    ),
  ];
}

function spanOf(traceId: string, parent: { spanId: string } | undefined, facts: SpanFacts) {
  const { name, key, kind = kinds.internal, startedAt, failure, events = [], links = [] } = facts;
  return {
    traceId,
    spanId: spanId(key),
    ...(parent && { parentSpanId: parent.spanId }),
    name,
    kind,
    startTimeUnixNano: nanoseconds(startedAt),
    // Clocks may differ: the engine's, the model's, ours.
    endTimeUnixNano: nanoseconds(Math.max(startedAt, facts.finishedAt)),
    attributes: attributesOf(facts.attributes),
    events: events.map(({ name, at, attributes }) => ({
      name,
      timeUnixNano: nanoseconds(at),
      attributes: attributesOf(attributes),
    })),
    links,
    flags: sampled,
    status: failure === undefined ? {} : { code: failedStatus, message: failure },
  };
}

function attributesOf(attributes: Attributes) {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: { [typeOf(value)]: value } }],
  );
}

function typeOf(value: string | number | boolean): string {
  if (typeof value === 'string') return 'stringValue';
  if (typeof value === 'boolean') return 'boolValue';
  return Number.isSafeInteger(value) ? 'intValue' : 'doubleValue';
}

function traceId(key: string): string {
  return createHash('sha256').update(`trace ${key}`).digest('hex').slice(0, 32);
}

function spanId(key: string): string {
  return createHash('sha256').update(`span ${key}`).digest('hex').slice(0, 16);
}

/** The last whole millisecond whose nanoseconds fit into 64 bits, which is how OTLP keeps a time. */
const lastTime = Number((2n ** 64n - 1n) / 1_000_000n);

/** Records of an older Offsite may contain any time that a harness reported. */
function nanoseconds(given: number): string {
  const ms = clamped(given, 0, lastTime);
  const whole = Math.floor(ms);
  return String(BigInt(whole) * 1_000_000n + BigInt(Math.floor((ms - whole) * 1_000_000)));
}
