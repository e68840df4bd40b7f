import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { cleanCommand } from '../../src/cli/commands/clean.ts';
import { imagesCommand } from '../../src/cli/commands/images.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { shell, testSpec } from '../engine/engine-fixture.ts';
import { engine, sharedEngine } from '../engine/shared-engine.ts';

sharedEngine();

/** What a command prints on stdout. */
async function printed(command: ReturnType<typeof imagesCommand | typeof cleanCommand>, ...args: string[]) {
  const lines: string[] = [];
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
  try {
    await command.parseAsync(args, { from: 'user' });
  } finally {
    out.mockRestore();
  }
  return lines.join('').trimEnd();
}

test('images: list says what each snapshot is and takes, and prune says first what it would remove', async () => {
  const { imageId: parentImageId, ...container } = await testSpec(engine);
  const description = `prepare of ${randomUUID()}`;
  const made = await engine.snapshot({
    parentImageId,
    container,
    key: description,
    description,
    build: async (container) => {
      await shell(container, 'head -c 3m /dev/zero > big');
    },
  });
  if (made.kind !== 'snapshot') throw new Error('no snapshot');
  try {
    const line = (await printed(imagesCommand(), 'list'))
      .split('\n')
      .find((row) => row.includes(description));
    expect(line).toMatch(new RegExp(`^${made.imageId.slice(7, 19)} .*  3\\.\\d MiB  2`));

    const { base, snapshots } = JSON.parse(await printed(imagesCommand(), 'list', '--json'));
    expect(base).toMatchObject({ id: parentImageId });
    expect(snapshots).toContainEqual(
      expect.objectContaining({ id: made.imageId, description, inUse: false }),
    );

    const would = JSON.parse(await printed(imagesCommand(), 'prune', '--all', '--dry-run', '--json'));
    expect(would).toMatchObject({ dryRun: true });
    expect(would.removed).toContainEqual(expect.objectContaining({ id: made.imageId }));
    expect(await printed(imagesCommand(), 'prune', '--older-than', '9999d')).toBe('0 snapshots removed, 0 B');
    expect(await engine.findImage(made.imageId)).toBeDefined();
  } finally {
    await dockerOf(engine).getImage(made.imageId).remove();
  }
});

test.each(['7', '7 days', '-1h'])(
  'images prune refuses the age "%s", and says what it expects',
  async (age) => {
    const command = imagesCommand().exitOverride();
    for (const child of command.commands) child.exitOverride().configureOutput({ writeErr: () => undefined });
    await expect(command.parseAsync(['prune', `--older-than=${age}`], { from: 'user' })).rejects.toThrow(
      'expected a time such as 90m, 12h or 7d.',
    );
  },
);

test('clean removes what a dead agent left, and names what it has to leave', async () => {
  await using stack = new AsyncDisposableStack();
  const instance = `test-${randomUUID()}`;
  const Labels = {
    offsite: '1',
    'offsite.instance': instance,
    'offsite.created': String(Date.now() - 61_000),
  };
  const image = await engine.findImage('offsite/base');
  const orphan = await dockerOf(engine).createContainer({ Image: image?.id ?? '', Labels });
  // No test that sweeps at the same time can remove it.
  const used = `offsite-test-${randomUUID()}`;
  await dockerOf(engine).createVolume({ Name: used, Labels });
  stack.defer(() => dockerOf(engine).getVolume(used).remove());
  const user = await dockerOf(engine).createContainer({
    Image: image?.id ?? '',
    HostConfig: { Binds: [`${used}:/somewhere`] },
  });
  stack.defer(() => user.remove({ force: true }));

  const would = JSON.parse(await printed(cleanCommand(), '--dry-run', '--json'));
  expect(would).toMatchObject({ dryRun: true });
  expect(would.removed).toContainEqual(expect.objectContaining({ kind: 'volume', id: used, instance }));
  const report = await printed(cleanCommand());
  expect(report).toMatch(new RegExp(`^volume +${used} +${instance} .* kept: something else uses it$`, 'm'));
  await expect(orphan.inspect()).rejects.toMatchObject({ statusCode: 404 });
});
