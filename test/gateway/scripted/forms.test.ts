import { expect, test } from 'vitest';
import { z } from 'zod';
import { sampleOf } from '../../../src/gateway/scripted/scripted-upstream.ts';
import { type Document, document, scripted, wires } from './asking.ts';

const judgment = z.strictObject({ reason: z.string(), score: z.number().min(0).max(1) });
const schema = z.toJSONSchema(judgment) as Record<string, unknown>;
const upstream = scripted({ fillForms: true, turns: [{ text: 'Nothing.', repeat: true }] });

/** What a client of each wire sends for an answer of a schema. */
const asking = {
  'openai-chat': {
    messages: [{ role: 'user', content: 'x' }],
    response_format: { type: 'json_schema', json_schema: { name: 'judgment', schema } },
  },
  'openai-responses': {
    input: 'x',
    text: { format: { type: 'json_schema', name: 'judgment', schema } },
  },
  'anthropic-messages': {
    max_tokens: 100,
    messages: [{ role: 'user', content: 'x' }],
    tools: [{ name: 'judgment', input_schema: schema }],
    tool_choice: { type: 'tool', name: 'judgment' },
  },
  gemini: {
    contents: [{ role: 'user', parts: [{ text: 'x' }] }],
    generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema },
  },
};

/** The JSON in an answer, wherever the wire has it. */
const given = {
  'openai-chat': (answer: Document) => JSON.parse(answer.choices[0].message.content),
  'openai-responses': (answer: Document) => JSON.parse(answer.output[0].content[0].text),
  'anthropic-messages': (answer: Document) => answer.content[0].input,
  gemini: (answer: Document) => JSON.parse(answer.candidates[0].content.parts[0].text),
};

test.each([...wires, 'gemini'] as const)('a request for a form over %s gets one', async (wire) => {
  const { document: answer } = await document(upstream, wire, { model: 'm-1', ...asking[wire] });
  expect(judgment.parse(given[wire](answer))).toEqual({ reason: 'This is a dry run.', score: 1 });
});

test('other requests get the turns of the script', async () => {
  const plain = { model: 'm-1', messages: [{ role: 'user', content: 'x' }] };
  const { document: answer } = await document(upstream, 'openai-chat', plain);
  expect(answer.choices[0].message.content).toBe('Nothing.');
});

test.each<[string, z.ZodType]>([
  ['choices', z.strictObject({ choice: z.enum(['good', 'bad']) })],
  ['a union', z.strictObject({ end: z.union([z.literal(true), z.string()]) })],
  ['lists', z.strictObject({ points: z.array(z.int().min(3)).min(2), note: z.string().optional() })],
  ['what may be null', z.strictObject({ text: z.string().nullable(), is: z.boolean() })],
])('a document with %s is what its schema allows', (_, form) => {
  const sample = sampleOf(z.toJSONSchema(form));
  expect(form.safeParse(sample).error).toBeUndefined();
});

test('a schema that contains itself ends', () => {
  const endless: Record<string, unknown> = { type: 'object', required: ['again'] };
  endless.properties = { again: endless };
  expect(JSON.stringify(sampleOf(endless)).length).toBeLessThan(1_000);
});
