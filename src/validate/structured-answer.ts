import { z } from 'zod';
import type { ChatAnswer, ChatMessage, ChatRequest } from '../gateway/chat/chat.ts';
import { OffsiteError } from '../offsite-error.ts';
import { DocumentTooHeavy, parseCheckedJson } from '../parse-json.ts';

/**
 * A model's answer that is JSON of a schema. The model is told to (servers differ in whether they enforce
 * it), and an answer of another form may be repaired once: the model is told what is wrong with it. A second
 * one is an `OffsiteError` of code `ANSWER_FORM`.
 */
export async function structuredAnswer<Value>(
  request: Omit<ChatRequest, 'schema'>,
  form: { name: string; schema: z.ZodType<Value> },
  ask: (request: ChatRequest) => Promise<ChatAnswer>,
): Promise<{ value: Value; answer: ChatAnswer }> {
  const schema = z.toJSONSchema(form.schema) as Record<string, unknown>;
  const asked: ChatRequest = { ...request, schema: { name: form.name, schema } };
  const first = await ask(asked);
  const read = readAnswer(first, form.schema);
  if ('value' in read) return { value: read.value, answer: first };
  const messages: ChatMessage[] = [
    ...asked.messages,
    { from: 'model', text: first.text, calls: [] },
    {
      from: 'user',
      text: `That is not the form asked for: ${read.problem}. Answer again, with the JSON object alone.`,
    },
  ];
  const second = await ask({ ...asked, messages });
  const repaired = readAnswer(second, form.schema);
  if ('value' in repaired) return { value: repaired.value, answer: second };
  throw new OffsiteError(`the model's answer is not of the form asked for: ${repaired.problem}`, {
    code: 'ANSWER_FORM',
    kind: 'infrastructure',
  });
}

/** Models whose form is not enforced like to put their JSON between fences. */
function readAnswer<Value>(
  { text, stopped }: ChatAnswer,
  schema: z.ZodType<Value>,
): { value: Value } | { problem: string } {
  if (stopped === 'refused') return { problem: 'the model refused to answer' };
  if (stopped === 'length') return { problem: 'it is longer than the model may answer' };
  const [, fenced] = /^\s*```(?:json)?\s*\n([\s\S]*?)\n```\s*$/.exec(text) ?? [];
  let parsed: unknown;
  try {
    parsed = parseCheckedJson(fenced ?? text);
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: `it is no JSON (${error.message})` };
    if (error instanceof DocumentTooHeavy) return { problem: error.message };
    throw error;
  }
  const read = schema.safeParse(parsed);
  if (read.success) return { value: read.data };
  return { problem: read.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; ') };
}
