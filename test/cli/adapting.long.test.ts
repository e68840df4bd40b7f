import { join } from 'node:path';
import { expect, test } from 'vitest';
import { limitedServer } from '../gateway/limits/limited-server.ts';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test('trials at a model whose limit adapts: none is lost', async () => {
  await using server = await limitedServer({ capacity: 1, beyond: 'refuses', firstMs: 20, restMs: 600 });
  using place = openPlace();
  const suite = place.suite({
    trials: 6,
    variants: [{ name: 'agent', model: 'small', harness: 'bash' }],
    cases: [{ id: 'talk', verify: 'true' }],
    config: {
      concurrency: 4,
      models: { small: { wire: 'openai-chat', baseUrl: server.url, maxParallel: { auto: true, most: 5 } } },
    },
  });
  const config = ['--config', join(place.folder, 'project', 'offsite.yaml')];
  const before = await offsite(place, ['models', '--json', ...config]);
  expect(JSON.parse(before.stdout)).toMatchObject([{ name: 'small', maxParallel: { auto: true, most: 5 } }]);
  const ended = await offsite(place, ['run', suite, '--json']);
  expect(ended).toMatchObject({ exitCode: 0 });
  expect(server.refused).toBeGreaterThan(0);
  const shown = await offsite(place, ['show', '--json']);
  const batch = JSON.parse(shown.stdout);
  expect(batch).toMatchObject({ passed: 6, failed: 0, void: 0 });
  expect((await offsite(place, ['models', ...config])).stdout).toMatch(/auto: up to 5/);
});
