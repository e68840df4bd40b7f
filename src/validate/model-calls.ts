import type { Clock } from '../base/clock.ts';
import { type Deadline, startDeadline } from '../base/deadline.ts';
import { infrastructureError, inputError, OffsiteError } from '../base/offsite-error.ts';
import type { Judgment, Validation } from '../contract/validation.ts';
import {
  AnswerRequest,
  type Asking,
  type AskModel,
  askRecorded,
  fencedMaterial,
  JudgeRequest,
  judge,
  type RecordedAsk,
  readAsk,
} from './judge/judge.ts';
import { capturedText } from './record.ts';
import type { SandboxedReply } from './sandboxed/host.ts';
import type { SandboxedAsk } from './sandboxed-records.ts';
import type { GradingFailure } from './validator-request.ts';

export interface CallsOfValidation {
  calls: NonNullable<Validation['calls']>;
  /** The first judgment made under the validation's own name. */
  judgment: Judgment | undefined;
  /** Whether at least one request got no answer. */
  failed: boolean;
}

interface CallParts {
  judge?: AskModel | undefined;
  clock: Clock;
  /** Milliseconds from now until requests without an answer have failed. */
  timeoutMs: number;
  signal: AbortSignal;
}

/**
 * Asks models for a validator's validations, and records each request and answer. Disposing it ends its
 * deadline.
 */
export class ModelCalls implements Disposable {
  readonly #parts: CallParts;
  readonly #deadline: Deadline;
  readonly #calls = new Map<string, CallsOfValidation['calls']>();
  readonly #failed = new Set<string>();
  readonly #pending = new Set<Promise<unknown>>();
  readonly judgments: Judgment[] = [];
  /** The first failure. */
  failure: GradingFailure | undefined;

  constructor(parts: CallParts) {
    this.#parts = parts;
    const { clock, timeoutMs, signal } = parts;
    this.#deadline = startDeadline(clock, timeoutMs, signal, () => unanswered(timeoutMs));
  }

  [Symbol.dispose](): void {
    this.#deadline[Symbol.dispose]();
  }

  /** Never rejects: a failure becomes the reply and is kept in `failure`. */
  fulfill(ask: SandboxedAsk): Promise<SandboxedReply> {
    const reply = this.#reply(ask);
    this.#pending.add(reply);
    reply.finally(() => this.#pending.delete(reply));
    return reply;
  }

  /** Resolves when no request is in progress. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending);
  }

  of(validation: string): CallsOfValidation {
    return {
      calls: this.#calls.get(validation) ?? [],
      judgment: this.judgments.find(({ name }) => name === validation),
      failed: this.#failed.has(validation),
    };
  }

  async #reply(ask: SandboxedAsk): Promise<SandboxedReply> {
    const { id, validation, method, request } = ask;
    try {
      return { id, value: await this.#value(validation, method, request) };
    } catch (error) {
      // The validator ends too, and nobody reads the reply.
      if (this.#parts.signal.aborted) return { id, error: 'the trial was canceled' };
      const failure = failureOf(error, ask);
      this.#failed.add(validation);
      this.failure ??= failure;
      return { id, error: failure.message };
    }
  }

  async #value(validation: string, method: SandboxedAsk['method'], request: unknown): Promise<unknown> {
    const { judge: model, clock } = this.#parts;
    if (!model) {
      throw inputError('JUDGE_MISSING', 'no judge model is configured', {
        hint: 'List models of offsite.yaml under `judges` in the suite.',
      });
    }
    const asking = {
      model,
      clock,
      signal: this.#deadline.signal,
      record: (ask: RecordedAsk) => this.#record(validation, method, ask),
    };
    if (method === 'answer') return answer(readAsk(AnswerRequest, request), asking);
    const judging = readAsk(JudgeRequest, request);
    const { judgment, result, failure } = await judge(judging, judging.name ?? validation, asking);
    this.judgments.push(judgment);
    if (failure !== undefined) throw failure;
    return result;
  }

  #record(validation: string, method: SandboxedAsk['method'], ask: RecordedAsk): void {
    const calls = this.#calls.get(validation) ?? [];
    this.#calls.set(validation, calls);
    calls.push({
      index: calls.length,
      method,
      startedAt: ask.startedAt,
      durationMs: ask.durationMs,
      input: capturedText(ask.input, 'json'),
      ...(ask.output !== undefined && { output: capturedText(ask.output) }),
      ...(ask.error !== undefined && { error: capturedText(ask.error) }),
    });
  }
}

/** `wrong`: it is no question, or there is nobody to answer it. */
export type JudgeAnswer = 'answers' | 'silent' | 'wrong';

/**
 * How the models answer the same question about no work. If they do, they are not why it failed.
 */
export async function answerAboutNothing(
  { request, ...ask }: SandboxedAsk,
  parts: CallParts,
): Promise<JudgeAnswer> {
  using calls = new ModelCalls(parts);
  // A judge is not asked about blank material.
  const material = ask.method === 'judge' ? '(nothing)' : {};
  await calls.fulfill({ ...ask, request: { ...(request as object), material } });
  if (calls.failure === undefined) return 'answers';
  return calls.failure.isWrong ? 'wrong' : 'silent';
}

function unanswered(timeoutMs: number): OffsiteError {
  return infrastructureError(
    'MODEL_UNREACHABLE',
    `there was no answer within the validator's ${timeoutMs / 1000} s`,
  );
}

function failureOf(error: unknown, ask: SandboxedAsk): GradingFailure {
  if (!(error instanceof OffsiteError)) throw error;
  const why = [error.message, error.hint].filter(Boolean).join('. ');
  const message = `${ask.method}() of "${ask.validation}" failed: ${why}`;
  return { kind: 'broken', message, ask, ...(error.kind === 'input' && { isWrong: true as const }) };
}

/**
 * Returns a model's answer, as text, to a validator's question. Throws the same errors as {@link
 * askRecorded}.
 */
async function answer(request: AnswerRequest, asking: Asking): Promise<string> {
  const { prompt, material, model, temperature, seed } = request;
  const fenced = Object.keys(material).length > 0 ? fencedMaterial(material) : undefined;
  const { text, stopped } = await askRecorded(
    {
      model,
      ...(fenced && { system: `${prompt}\n\n${fenced.instruction}` }),
      messages: [{ from: 'user', text: fenced ? fenced.text : prompt }],
      temperature,
      seed,
    },
    asking,
  );
  if (stopped !== 'refused') return text;
  throw infrastructureError('MODEL_REFUSED', 'the model refused to answer');
}
