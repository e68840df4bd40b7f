import { expect, test } from 'vitest';
import { modelRequests } from '../../src/bounds/sandbox.ts';
import { hostileUpstream } from './hostile-upstream.ts';
import { relayProcess, ways } from './relay-process.ts';

test.for(ways)(
  'an answer that nobody reads, %s, is ended, and its place goes to the trial that waits',
  async (way) => {
    await using upstream = await hostileUpstream();
    await using agent = await relayProcess({ upstream: upstream.url });
    using hostile = await agent.trial(way);
    using victim = await agent.trial();
    const request = hostile.send(
      JSON.stringify({ model: 'shared', stream: true, messages: [{ role: 'user', content: 'large' }] }),
    );
    // It has the model's one place now, and never reads.
    await new Promise((resolve) => request.once('response', resolve));
    const asked = performance.now();
    const answer = await victim.ask('shared', 'brief');
    expect(answer.status).toBe(200);
    expect(performance.now() - asked).toBeLessThan(modelRequests.time.unreadAnswer + 8_000);
  },
);
