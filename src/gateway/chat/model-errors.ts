import {
  infrastructureError,
  messageOf,
  OffsiteError,
  type OffsiteErrorOptions,
} from '../../base/offsite-error.ts';
import type { Wire } from '../../suite/model-config.ts';
import type { UpstreamAnswer } from '../answer.ts';
import { readErrorText } from '../wires/model-error.ts';

/** The status and the headers of an answer. */
export type UpstreamHead = Pick<UpstreamAnswer, 'status' | 'headers'>;

/** A model answered with an error. */
export class ModelRefused extends OffsiteError {
  readonly answer: UpstreamHead;

  constructor(message: string, options: OffsiteErrorOptions, { status, headers }: UpstreamHead) {
    super(message, options);
    this.answer = { status, headers };
  }
}

/** Whether the model asks to wait. */
export function isLimited(error: unknown): boolean {
  return error instanceof ModelRefused && error.answer.status === 429;
}

/** The error of a model that answered with an error; keeps the model's own message. */
export function refusedBy({ model }: { model: string }, answer: UpstreamHead, body: Buffer): ModelRefused {
  const { status } = answer;
  const { codes, message = 'an empty body' } = readErrorText(body);
  const code = isContextFull(codes, message) ? 'MODEL_CONTEXT_FULL' : 'MODEL_REFUSED';
  return new ModelRefused(
    `the model ${model} refused the request (${status}): ${message}`,
    { code, kind: 'infrastructure', hint: hintFor(status) },
    answer,
  );
}

/** The error if no answer came, or it broke off. An OffsiteError is returned unchanged, with its own hint. */
export function unreachable(to: { model: string }, thrown: unknown): OffsiteError {
  if (thrown instanceof OffsiteError) return thrown;
  return infrastructureError(
    'MODEL_UNREACHABLE',
    `the model ${to.model} could not be reached: ${messageOf(thrown)}`,
    { hint: 'Check its baseUrl, and that this machine can reach it.', cause: thrown },
  );
}

export function unreadable(to: { wire: Wire; model: string }, problem: Error): OffsiteError {
  return infrastructureError(
    'MODEL_ANSWER_UNREADABLE',
    `the model ${to.model} gave an answer that is not valid in ${to.wire}: ${problem.message}`,
    { hint: 'Check that baseUrl and wire match.' },
  );
}

/** What a person can do about the status of a model's error. */
export function hintFor(status: number): string {
  if (status === 401 || status === 403)
    return 'Check the key in the variable that apiKeyEnv names, its permissions, and auth.';
  if (status === 404)
    return "Check the provider's name for the model, and baseUrl (with /v1 if the API needs it).";
  if (status === 429) return 'A rate limit is reached: wait, lower maxParallel, or raise the limit.';
  if (status >= 500) return 'The provider has a problem; try again later.';
  return "This is the provider's own message; check the wire and the model.";
}

/**
 * Whether the conversation is too long for the model: unlike every other refusal, the agent causes this one.
 * OpenAI and llama.cpp have a code for it; Anthropic and vLLM report it only in the message.
 */
export function isContextFull(codes: readonly string[], message: string): boolean {
  if (codes.includes('context_length_exceeded') || codes.includes('exceed_context_size_error')) return true;
  return /prompt is too long|maximum context length|exceeds? the (available )?context/i.test(message);
}
