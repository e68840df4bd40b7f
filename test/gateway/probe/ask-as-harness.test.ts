import { expect, test } from 'vitest';
import { harnessForms, openHarnessDoor } from '../../../src/gateway/probe/ask-as-harness.ts';
import { wireTable } from '../../../src/gateway/wires/wire-table.ts';
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
    const { requests } = wireTable[wire];
    expect(requests.read(sent).system.length > 0).toBe(requests.read(body).system.length > 0);
    const typesOf = (tools: unknown) => new Set((tools as { type?: string }[]).map(({ type }) => type));
    expect(typesOf(sent.tools)).toEqual(typesOf(body.tools));
  },
);

function nameOf(title: string): string {
  return title.toLowerCase().replace(' ', '-');
}
