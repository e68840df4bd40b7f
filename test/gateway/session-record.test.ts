import { expect, test } from 'vitest';
import { modelRequests } from '../../src/bounds/sandbox.ts';
import type { ModelRole } from '../../src/gateway/gateway.ts';
import { newExchange, sessionRecord } from '../../src/gateway/session-record.ts';
import { handClock } from '../agent/test-clock.ts';

test('an agent that has made all the requests it may leaves its user and its judges theirs', () => {
  const record = sessionRecord();
  const made = (role: ModelRole) => {
    const request = {
      role,
      model: 'big',
      wire: 'openai-chat',
      path: '/x',
      streamed: false,
      requestBytes: 1,
    } as const;
    record.add({ exchange: newExchange(handClock(), request), use: 'free', pricesOf: undefined });
  };
  for (let request = 0; request <= modelRequests.count.exchanges; request += 1) made('agent');
  made('judge');
  expect((['agent', 'user', 'judge'] as const).map((role) => record.isFull(role))).toEqual([
    true,
    false,
    false,
  ]);
});
