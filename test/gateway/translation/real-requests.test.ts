import { describe, expect, test } from 'vitest';
import { Losses } from '../../../src/gateway/translation/losses.ts';
import { defaultMaxTokens } from '../../../src/gateway/wires/anthropic-messages/requests.ts';
import type { JsonObject } from '../../../src/gateway/wires/lenient.ts';
import { wireTable } from '../../../src/gateway/wires/wire-table.ts';
import { wires } from '../../../src/suite/model-config.ts';
import { recordedRequests } from '../../runners/recorded-requests.ts';
import { essenceOf } from './essence.ts';

/** What the real CLIs send: see test/runners/record-requests.ts. */
const recorded = recordedRequests();

test('there is a request of each CLI in each of its wires, with all that a conversation has', () => {
  expect(recorded.length).toBeGreaterThanOrEqual(12);
  const types = recorded.flatMap(({ wire, body }) => {
    const { messages } = wireTable[wire].translation.readRequest(body, new Losses('lenient', 'big'));
    return messages.flatMap((message) =>
      'parts' in message ? message.parts.map((part): string => part.type) : [],
    );
  });
  expect(new Set(types)).toEqual(new Set(['text', 'reasoning', 'call', 'image']));
});

test.each(recorded)(
  '$cli over $wire: each call has one result, and no thought a stand-in',
  ({ wire, body }) => {
    const { messages } = wireTable[wire].translation.readRequest(body, new Losses('lenient', 'big'));
    const results = messages.flatMap((message) => (message.from === 'tool' ? [message.callId] : []));
    expect(results).toEqual([...new Set(results)]);
    expect(JSON.stringify(messages)).not.toContain('skip_thought_signature_validator');
  },
);

describe.each(recorded)('a request of $cli over $wire', ({ wire, body }) => {
  const others = wires.filter((other) => other !== wire);

  test.each(others)('means the same over %s, but for the losses that are named', (other) => {
    const known = { model: 'big', streamed: true };
    const losses = new Losses('lenient', 'big');
    const request = {
      ...wireTable[wire].translation.readRequest(body, losses),
      ...known,
    };
    const { translation } = wireTable[other];
    const target = { model: 'big', maxOutputTokens: undefined };
    const written = JSON.parse(JSON.stringify(translation.writeRequest(request, losses, target)));
    const unread = new Losses('lenient', 'big');
    const back = { ...translation.readRequest(written as JsonObject, unread), ...known };
    // A summary of thoughts is asked for wherever there are thoughts, so it means nothing to other wires.
    expect(unread.all().filter(({ path }) => path !== 'reasoning.summary')).toEqual([]);
    const lost = losses.all();
    // This wire needs a limit.
    const { maxTokens = other === 'anthropic-messages' ? defaultMaxTokens : undefined } = request;
    expect(essenceOf(back, lost)).toEqual(essenceOf({ ...request, maxTokens }, lost));
    expect(lost.map(({ path, kind, times }) => `${path}: ${kind}, ${times}`)).toMatchSnapshot();
  });
});
