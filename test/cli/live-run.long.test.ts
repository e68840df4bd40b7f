import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { removeSnapshotsOf } from './containers.ts';
import { offsite, startInTerminal } from './offsite.ts';
import { openPlace } from './place.ts';

/** A prepare that no snapshot exists of yet. */
const preparing = (seconds: number) => `: ${randomUUID()}; sleep ${seconds}`;

afterAll(() => removeSnapshotsOf('live-slow'));

const slow = () => ({
  id: 'live-slow',
  prepare: preparing(4),
  verify: 'true',
  variables: { act: 'sleep 3' },
});

/** The lines that are drawn over again and again. */
const isLive = (line: string) => /…|░|█/.test(line);

describe.concurrent('in a terminal', () => {
  test('a run shows what is prepared and for how long, then its trials, and leaves the finished lines', async ({
    expect,
  }) => {
    using place = openPlace();
    const { screen, ended } = startInTerminal(place, ['run', place.suite({ cases: [slow()], trials: 2 })]);
    const seen = async () => (await screen.lines()).join('\n');
    await expect.poll(seen).toMatch(/░+ {2}0\/2\n.*\n {2}… prepare of live-slow {2} +2 s/);
    await expect.poll(seen).toMatch(/1 harness|2 harness/);
    await expect.poll(seen).toMatch(/… live-slow {2}worker #[01] {2}harness {2}\d s/);
    await expect.poll(seen).toMatch(/1\/2 {2}1 passed|2\/2 {2}2 passed|passed {2}failed {2}void/);
    expect(await ended).toBe(0);
    const lines = await screen.lines();
    expect(lines.filter(isLive)).toEqual([]);
    expect(lines.filter((line) => /^ {2}✓ live-slow · worker #[01] {2}passed/.test(line))).toHaveLength(2);
    expect(lines.join('\n')).toMatch(/run +passed +failed/);
    // The cursor is shown again.
    expect(screen.sent.lastIndexOf('\u001b[?25h')).toBeGreaterThan(screen.sent.lastIndexOf('\u001b[?25l'));
  });

  test('Ctrl-C leaves a clean screen and the cursor', async ({ expect }) => {
    using place = openPlace();
    const cases = [{ id: 'endless', verify: 'true', variables: { act: 'sleep 600' } }];
    const { screen, ended, type } = startInTerminal(place, ['run', place.suite({ cases })], { columns: 60 });
    await expect.poll(async () => (await screen.lines()).join('\n')).toMatch(/… endless .* harness/);
    type('\u0003');
    expect(await ended).toBe(130);
    const lines = await screen.lines();
    expect(lines.filter(isLive)).toEqual([]);
    expect(lines.join('\n')).toContain('SIGINT: stopping the trials');
    expect(screen.sent.lastIndexOf('\u001b[?25h')).toBeGreaterThan(screen.sent.lastIndexOf('\u001b[?25l'));
  });

  test('a second Ctrl-C, which ends it at once, does so too', async ({ expect }) => {
    using place = openPlace();
    const cases = [{ id: 'stubborn', verify: 'true', prepare: preparing(600), variables: { act: 'true' } }];
    const { screen, ended, type } = startInTerminal(place, ['run', place.suite({ cases })]);
    await expect.poll(async () => (await screen.lines()).join('\n')).toMatch(/… prepare of stubborn/);
    type('\u0003');
    // Sooner, it would count as the same one.
    await delay(1_100);
    type('\u0003');
    expect(await ended).toBe(130);
    expect((await screen.lines()).filter(isLive)).toEqual([]);
    expect(screen.sent.lastIndexOf('\u001b[?25h')).toBeGreaterThan(screen.sent.lastIndexOf('\u001b[?25l'));
  });

  test('a check shows the same, without colors where NO_COLOR is set, in ASCII where the locale is C', async ({
    expect,
  }) => {
    using place = openPlace();
    const suite = place.suite({ cases: [{ ...slow(), verify: 'test -e done', solution: 'touch done' }] });
    const env = { NO_COLOR: '1', LC_ALL: 'C' };
    const { screen, ended } = startInTerminal(place, ['check', suite], { columns: 60, env });
    const seen = async () => (await screen.lines()).join('\n');
    await expect.poll(seen).toMatch(/\.+ {2}0\/2\n.*\n {2}~ prepare of live-slow {2} +2 s/);
    expect(await ended).toBe(0);
    expect(await seen()).toContain('live-slow: ok');
    expect(await seen()).not.toContain('~');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: sequences begin with one
    expect(screen.sent).not.toMatch(/\u001b\[[\d;]*m/);
    expect(stripVTControlCharacters(screen.sent)).toMatch(/^\p{ASCII}*$/u);
  });

  test('a dumb terminal and CI get plain lines', async ({ expect }) => {
    for (const [name, value] of [
      ['TERM', 'dumb'],
      ['CI', 'true'],
    ] as const) {
      using place = openPlace();
      const cases = [{ id: 'quick', verify: 'true', variables: { act: 'true' } }];
      const started = startInTerminal(place, ['run', place.suite({ cases })], {
        env: { [name]: value, NO_COLOR: '1' },
      });
      expect(await started.ended).toBe(0);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: sequences begin with one
      expect(started.screen.sent).not.toMatch(/\u001b/);
      expect((await started.screen.lines()).join('\n')).toContain('✓ quick · worker #0  passed');
    }
  });
});

test('without a terminal a long prepare is told, and stdout stays one document', async () => {
  using place = openPlace();
  const cases = [{ ...slow(), prepare: preparing(17) }];
  const { exitCode, stdout, stderr } = await offsite(place, ['run', place.suite({ cases }), '--json']);
  expect(exitCode, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ passed: 1 });
  expect(stderr).toMatch(/^ {2}0 of 1 done; prepare of live-slow for \d+ s$/m);
});
