import { z } from 'zod';
import { infrastructureError } from '../base/offsite-error.ts';
import { DocumentTooHeavy, parseCheckedJson } from '../base/parse-json.ts';
import { printedText } from '../bounds/anyone.ts';
import type { ChatAnswer, ChatMessage, ChatRequest } from '../gateway/chat/chat.ts';
import { schemaProblems } from '../suite/schema-problems.ts';
import { nothingMore } from '../suite/script-file.ts';

/**
 * A model's answer as JSON that matches a schema. The request contains the schema, but not all servers
 * enforce it. If the answer has another form, the model is shown what is wrong and may answer once more. If
 * the second answer is wrong too, throws an `OffsiteError` with code `ANSWER_FORM`. `refused` says what was
 * wrong with the first answer.
 */
export async function structuredAnswer<Value>(
  request: Omit<ChatRequest, 'schema'>,
  form: { name: string; schema: z.ZodType<Value> },
  ask: (request: ChatRequest) => Promise<ChatAnswer>,
): Promise<{ value: Value; answer: ChatAnswer; refused?: string }> {
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
  if ('value' in repaired) return { value: repaired.value, answer: second, refused: read.problem };
  const who = request.model === undefined ? 'the model' : `the model ${request.model}`;
  const said = [...new Set([first, second].map(({ text }) => text))]
    .map((text) => JSON.stringify(text.slice(0, printedText.bytes.value)))
    .join(', and asked again: ');
  const cure =
    second.text === nothingMore ? '; a script gives judges a turn with JSON, or has `fillForms: true`' : '';
  throw infrastructureError(
    'ANSWER_FORM',
    `the answer of ${who} does not have the requested form: ${repaired.problem}; it says: ${said}${cure}`,
  );
}

/**
 * If the server does not enforce the schema, models often put their JSON between code fences or words, and
 * add members. The text from its first brace to its last one is read, so there can be one object only.
 */
function readAnswer<Value>(
  { text, stopped }: ChatAnswer,
  schema: z.ZodType<Value>,
): { value: Value } | { problem: string } {
  if (stopped === 'refused') return { problem: 'the model refused to answer' };
  if (stopped === 'length') return { problem: 'it is longer than the model’s output limit' };
  const [object = text] = /\{[\s\S]*\}/.exec(text) ?? [];
  let parsed: unknown;
  try {
    parsed = parseCheckedJson(object);
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: `it is not JSON (${error.message})` };
    if (error instanceof DocumentTooHeavy) return { problem: error.message };
    throw error;
  }
  const read = schema.safeParse(parsed, { reportInput: true });
  if (read.success) return { value: read.data };
  const problems = schemaProblems(read.error).map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  );
  return { problem: problems.join('; ') };
}
