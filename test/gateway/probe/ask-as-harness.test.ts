import { expect, test } from 'vitest';
import { harnessForms, openHarnessDoor } from '../../../src/gateway/probe/ask-as-harness.ts';
import { Losses } from '../../../src/gateway/translation/losses.ts';
import type { JsonObject } from '../../../src/gateway/wires/lenient.ts';
import { wireTable } from '../../../src/gateway/wires/wire-table.ts';
import type { Wire } from '../../../src/suite/model-config.ts';
import { recordedRequests } from '../../runners/recorded-requests.ts';
import { place } from '../gateway-fixture.ts';
import { json } from '../test-upstream.ts';

const tool = { name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } };

test.each(recordedRequests().filter(({ cli, wire }) => cli === nameOf(harnessForms[wire].name)))(
  'a check asks for all that $cli asks for over $wire',
  async ({ wire, body }) => {
    await using at = await place({ model: { wire } }, json(400, { error: { message: 'no' } }));
    await using door = await openHarnessDoor(at.session, { name: 'big', maxOutputTokens: undefined });
    const messages = [{ from: 'user' as const, text: 'Look.' }];
    const asked = door.ask(wire, { messages, tools: [tool] }, AbortSignal.timeout(10_000));
    await expect(asked).rejects.toThrow('no');
    const sent = JSON.parse(`${at.upstream.received[0]?.body}`);
    expect(Object.keys(sent)).toEqual(expect.arrayContaining(Object.keys(body)));
    expect(hasSystem(wire, sent)).toBe(hasSystem(wire, body));
    const typesOf = (tools: unknown) => new Set((tools as { type?: string }[]).map(({ type }) => type));
    expect(typesOf(sent.tools)).toEqual(typesOf(body.tools));
  },
);

function hasSystem(wire: Wire, body: JsonObject): boolean {
  const messages = wireTable[wire].translation.readMessages(body, new Losses('partial', 'big'));
  return messages.some(({ from }) => from === 'system');
}

function nameOf(title: string): string {
  return title.toLowerCase().replace(' ', '-');
}
