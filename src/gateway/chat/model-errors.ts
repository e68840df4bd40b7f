import { messageOf, OffsiteError } from '../../offsite-error.ts';
import type { Wire } from '../../suite/model-config.ts';
import { codesOf } from '../wires/answer-facts.ts';
import { member, parsed } from '../wires/lenient.ts';
import { errorMessage } from '../wires/openai.ts';
import { wireTable } from '../wires/wire-table.ts';

/** The model answered with an error, in its own words. */
export function refusedBy(to: { wire: Wire; model: string }, status: number, body: Buffer): OffsiteError {
  const document = parsed(body.toString('utf8'));
  const told =
    wireTable[to.wire].answers.readFacts(document).failure ?? errorMessage(member(document, 'error'));
  const message = told ?? errorMessage(document) ?? excerpt(body);
  return new OffsiteError(`the model ${to.model} refused the request (${status}): ${message}`, {
    code: isContextFull(document, message) ? 'MODEL_CONTEXT_FULL' : 'MODEL_REFUSED',
    kind: 'infrastructure',
    hint: hintFor(status),
  });
}

/** No answer came, or it broke off. An OffsiteError passes through, with its own hint. */
export function unreachable(to: { model: string }, thrown: unknown): OffsiteError {
  if (thrown instanceof OffsiteError) return thrown;
  return new OffsiteError(`the model ${to.model} could not be reached: ${messageOf(thrown)}`, {
    code: 'MODEL_UNREACHABLE',
    kind: 'infrastructure',
    hint: 'Check its baseUrl, and that this machine reaches it.',
    cause: thrown,
  });
}

export function unreadable(to: { wire: Wire; model: string }, body: Buffer): OffsiteError {
  return new OffsiteError(
    `the model ${to.model} answered with what is no answer of ${to.wire}: ${excerpt(body)}`,
    {
      code: 'MODEL_ANSWER_UNREADABLE',
      kind: 'infrastructure',
      hint: 'Check that baseUrl and wire belong together.',
    },
  );
}

function hintFor(status: number): string {
  if (status === 401 || status === 403)
    return 'Check the key in the variable that apiKeyEnv names, what it may use, and how auth sends it.';
  if (status === 404)
    return "Check the model's name at its provider, and that baseUrl is where its API begins (with /v1 where that has it).";
  if (status === 429) return 'Its limits are reached: wait, lower maxParallel, or raise the limits.';
  if (status >= 500) return 'The provider itself has trouble; try again later.';
  return 'The message above is its own; check the wire and the model.';
}

/**
 * Whether the conversation has outgrown the model: that is the agent's own doing, unlike every other refusal.
 * OpenAI and llama.cpp have a code for it; Anthropic and vLLM say it only in words.
 */
function isContextFull(document: unknown, message: string): boolean {
  const codes = codesOf(member(document, 'error'));
  if (codes.includes('context_length_exceeded') || codes.includes('exceed_context_size_error')) return true;
  return /prompt is too long|maximum context length|exceeds? the (available )?context/i.test(message);
}

function excerpt(body: Buffer): string {
  const text = body.toString('utf8').replace(/\s+/g, ' ').trim();
  return text === '' ? 'an empty body' : JSON.stringify(text.slice(0, 200));
}
