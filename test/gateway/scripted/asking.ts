import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createParser } from 'eventsource-parser';
import { stringify } from 'yaml';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { Upstream } from '../../../src/gateway/answer.ts';
import { scriptedUpstream } from '../../../src/gateway/scripted/scripted-upstream.ts';
import type { Wire } from '../../../src/suite/model-config.ts';

/** The wires whose bodies name the model. */
export const wires = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;

const paths: Record<Wire, string> = {
  'openai-chat': '/chat/completions',
  'openai-responses': '/responses',
  'anthropic-messages': '/messages?beta=true',
  gemini: '/models/m-1:generateContent',
};

/** A scripted model from a script in a file of its own. */
export function scripted(script: unknown, clock: Clock = systemClock): Upstream {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-script-'));
  try {
    const file = join(folder, 'script.yaml');
    writeFileSync(file, typeof script === 'string' ? script : stringify(script));
    return scriptedUpstream(file, clock);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Asked {
  path?: string;
  signal?: AbortSignal;
}

export function send(upstream: Upstream, wire: Wire, body: unknown, { path, signal }: Asked = {}) {
  return upstream.send(
    {
      wire,
      method: 'POST',
      path: path ?? paths[wire],
      headers: {},
      body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    },
    signal ?? AbortSignal.timeout(60_000),
  );
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into documents of any shape
export type Document = any;

/** The answer's status and document. */
export async function document(upstream: Upstream, wire: Wire, body: unknown, asked?: Asked) {
  const answer = await send(upstream, wire, body, asked);
  return { ...answer, document: JSON.parse(await text(answer.body)) as Document };
}

/** The events of a streamed answer: their names, and their data parsed where they are JSON. */
export async function events(upstream: Upstream, wire: Wire, body: object, asked?: Asked) {
  const answer = await send(upstream, wire, { stream: true, ...body }, asked);
  const found: { event: string | undefined; data: Document; raw: string }[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) =>
      found.push({ event, data: data === '[DONE]' ? data : JSON.parse(data), raw: data }),
  });
  parser.feed(await text(answer.body));
  return found;
}

export async function text(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** One tool that runs commands, as each wire's harnesses offer it. */
export function shellOffered(wire: Wire, name: string, parameters: object) {
  if (wire === 'openai-chat') return [{ type: 'function', function: { name, parameters } }];
  if (wire === 'openai-responses') return [{ type: 'function', name, parameters }];
  return [{ name, input_schema: parameters }];
}
