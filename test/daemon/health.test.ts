import { expect, test } from 'vitest';
import { HealthWatch } from '../../src/agent/daemon/health.ts';
import { Metrics } from '../../src/agent/daemon/metrics.ts';
import { Watchdog } from '../../src/agent/loop.ts';
import { systemClock as clock } from '../../src/base/clock.ts';
import { createClient } from '../../src/client/client.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { openFlakyService } from '../cli/flaky-service.ts';
import { openPlace } from '../cli/place.ts';

test('a daemon whose key may not claim is not well until it may', async () => {
  using place = openPlace();
  await using service = await openFlakyService(place);
  const { OFFSITE_URL: url, OFFSITE_API_KEY: apiKey } = service.env;
  await using client = createClient({ url, apiKey, clock });
  const said: boolean[] = [];
  const engine = { findImage: async () => undefined } as unknown as Engine;
  const tell = { changed: ({ ok }: { ok: boolean }) => void said.push(ok), alive: async () => undefined };
  const parts = { client, clock, watchdog: new Watchdog(clock), metrics: new Metrics(), engine, ...tell };
  const watch = new HealthWatch(parts);
  const { signal } = new AbortController();
  const unknown = { ok: false, troubles: ['the service: it has not answered yet'] };
  expect(watch.health, 'before the service was asked').toEqual(unknown);

  service.forbidden.add('evals.claimTrial');
  await watch.look(signal);
  expect(watch.health.ok).toBe(false);
  expect(watch.health.troubles.join()).toContain('lacks the permission evals:write');
  service.forbidden.clear();
  await watch.look(signal);
  expect(watch.health).toEqual({ ok: true, troubles: [] });
  expect(said).toEqual([false, true]);
});
