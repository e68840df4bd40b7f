import type { ServerResponse } from 'node:http';
import { Losses } from '../../../src/gateway/translation/losses.ts';
import type { NeutralEvent } from '../../../src/gateway/translation/neutral-answer.ts';
import { textOfEvent } from '../../../src/gateway/wires/lenient.ts';
import { wireTable } from '../../../src/gateway/wires/wire-table.ts';
import { type Wire, wires } from '../../../src/suite/model-config.ts';
import { requests } from './requests.ts';
import { servedPlace } from './translated-place.ts';

/**
 * Each wire once as a model's and once as a client's: whoever reads a model's answer does not know its
 * client. That all pairs understand each other is in servers.test.ts.
 */
export const pairs = wires.map((model, index) => ({
  model,
  client: wires[(index + 1) % wires.length] ?? model,
}));

/** What only a stream that ends well has. */
export const success: Record<Wire, RegExp> = {
  'openai-chat': /\[DONE\]|"finish_reason":"/,
  'openai-responses': /response\.(completed|incomplete)/,
  'anthropic-messages': /message_stop/,
  gemini: /"finishReason"/,
};

export const call = (id: string, pieces: string[]): NeutralEvent[] => [
  { type: 'call', id, name: 'bash' },
  ...pieces.map((text): NeutralEvent => ({ type: 'arguments', text })),
  { type: 'callEnd' },
];

export const end: NeutralEvent = {
  type: 'end',
  stop: 'tools',
  sequence: undefined,
  usage: { input: 7, output: 5 },
};

/** A stream of a model of this wire. */
export function framesOf(wire: Wire, steps: readonly NeutralEvent[]): string[] {
  const frames: string[] = [];
  const request = { ...requests.neutral, usageAsked: true };
  const asked = { request, at: 0, losses: new Losses('lenient', 'big') };
  const writer = wireTable[wire].translation.writeStream(asked, (event) => frames.push(textOfEvent(event)));
  for (const step of [{ type: 'start', id: 'a1', model: 'big-1' } as const, ...steps]) writer.take(step);
  return frames;
}

/** Writes a stream, no faster than it is read. */
export async function write(response: ServerResponse, frames: Iterable<string | Buffer>): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const frame of frames) {
    if (response.destroyed) return;
    if (response.write(frame)) continue;
    await new Promise<void>((resolve) => {
      const goOn = () => {
        response.off('drain', goOn).off('close', goOn);
        resolve();
      };
      response.on('drain', goOn).on('close', goOn);
    });
  }
}

/** What a client of this wire gets: all bytes, and whether they ended as a complete body does. */
export async function heard(
  client: Wire,
  model: Wire,
  serve: (response: ServerResponse) => unknown,
  { streamed = true, signal }: { streamed?: boolean; signal?: AbortSignal } = {},
) {
  await using place = await servedPlace(model, {}, serve);
  const { path, body } = requests.of(client, streamed);
  let text = '';
  let isWhole = true;
  let status: number | undefined;
  const decoder = new TextDecoder();
  try {
    const answer = await fetch(`${place.origin}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${place.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: signal ?? null,
    });
    status = answer.status;
    for await (const chunk of answer.body ?? []) text += decoder.decode(chunk, { stream: true });
  } catch {
    isWhole = false;
  }
  const [exchange] = (await place.session.account()).exchanges;
  return { status, text, isWhole, failure: exchange?.failure };
}
