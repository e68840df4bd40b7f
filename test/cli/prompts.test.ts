import { expect, test } from 'vitest';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test('a new version of a prompt is shown only after it is promoted', async () => {
  using place = openPlace();
  const prompts = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await offsite(place, ['service', 'prompts', ...args]);
    expect([exitCode, stderr]).toEqual([0, '']);
    return stdout;
  };
  const version = async () => JSON.parse(await prompts('get', 'greeting', '--json')).version;
  const file = place.write('greeting.txt', 'Hello.');
  expect(await prompts('write', 'greeting', file)).toMatch(/prompts promote greeting production 1$/m);
  expect(await version()).toBe(1);
  await prompts('promote', 'greeting', 'production', '1');
  await prompts('write', 'greeting', file);
  expect(await version()).toBe(1);
  await prompts('promote', 'greeting', 'production', '2');
  expect(await version()).toBe(2);
});
