import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { offsite } from './offsite.ts';
import { openPlace } from './place.ts';

test('a case is prepared once for check, all harnesses and profiles, also with files of its environment', async () => {
  using place = openPlace();
  const id = `once-${randomUUID().slice(0, 8)}`;
  place.write('given.txt', 'given');
  place.write('model.yaml', 'turns:\n  - run: cat given.txt ready.txt > result.txt\n  - text: Done.\n');
  const suite = place.suite({
    config: {
      models: { scripted: { scripted: 'model.yaml' } },
      profiles: { worker: { run: 'cat given.txt ready.txt > result.txt' }, terse: { maxTurns: 9 } },
    },
    variants: [
      { name: 'worker', model: 'none', harness: 'command', profile: 'worker' },
      { name: 'loop', model: 'scripted', harness: 'bash' },
      { name: 'terse', model: 'scripted', harness: 'bash', profile: 'terse' },
    ],
    cases: [
      {
        id,
        environment: { files: { 'given.txt': 'given.txt' } },
        // Cases with equal contents would share a snapshot.
        prepare: `echo ready ${id} > ready.txt`,
        verify: 'grep -q given result.txt\ngrep -q ready result.txt',
        solution: 'cat given.txt ready.txt > result.txt',
      },
    ],
  });
  const prepared = async () => {
    const { stdout, stderr } = await offsite(place, ['engine', 'images', 'list'], { dataFolder: null });
    expect(stderr).toBe('');
    return stdout.split('\n').filter((line) => line.includes(`prepare of ${id}`)).length;
  };
  const checked = await offsite(place, ['check', suite]);
  expect(checked.exitCode, checked.stderr).toBe(0);
  expect(await prepared()).toBe(1);
  const ran = await offsite(place, ['run', suite]);
  expect([ran.exitCode, ran.stdout], ran.stderr).toEqual([0, expect.stringMatching(/^all +3 +0 +0 +100 %/m)]);
  expect(await prepared()).toBe(1);
});
