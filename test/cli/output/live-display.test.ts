import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import type { Activity } from '../../../src/cli/output/activity.ts';
import { trialWords } from '../../../src/cli/output/activity-text.ts';
import { type Display, frameOf } from '../../../src/cli/output/frame.ts';
import { liveDisplay } from '../../../src/cli/output/live-display.ts';
import { Output } from '../../../src/text/output.ts';
import { activityAt } from './activity-fixture.ts';
import { TerminalScreen } from './terminal-screen.ts';

let display: Display | undefined;
afterEach(() => display?.[Symbol.dispose]());

function open(screen: TerminalScreen, activity: Activity): Display {
  const err = new Output(screen);
  display = liveDisplay({
    stream: screen as unknown as NodeJS.WriteStream,
    err,
    frame: (size) =>
      frameOf(activity.state(), { size, words: trialWords, shown: (content) => err.shown(content) }),
  });
  return display;
}

/** Three trials run, of 240. */
function running() {
  const at = activityAt();
  at.activity.update({ kind: 'planned', trials: 240 });
  for (const name of ['one', 'two', 'three']) at.runs(`a-case-whose-name-is-long-${name}`);
  return at;
}

const rowsOf = (lines: string[]) => lines.filter((line) => line.includes('…'));

describe('on a terminal', () => {
  test('the lines stay at the bottom, and what is printed stays above them, in order', async () => {
    const screen = new TerminalScreen();
    const { activity, ends } = running();
    const live = open(screen, activity);
    live.changed();
    expect(rowsOf(await screen.lines())).toHaveLength(3);
    for (let index = 0; index < 30; index++) live.print(`line ${index}`);
    ends('a-case-whose-name-is-long-two', 'passed', 1);
    live.changed();
    await expect.poll(async () => rowsOf(await screen.lines()).length).toBe(2);
    const lines = await screen.lines();
    expect(lines.slice(0, 30)).toEqual(Array.from({ length: 30 }, (_, index) => `line ${index}`));
    expect(lines[30]).toMatch(/^ {2}░+ {2}1\/240 {2}1 passed/);
    expect(lines).toHaveLength(34);
  });

  test('a hundred events and lines at once are drawn a few times only', async () => {
    const screen = new TerminalScreen();
    const { activity, runs } = running();
    const live = open(screen, activity);
    for (let index = 0; index < 500; index++) {
      runs(`case-${index}`);
      live.changed();
      if (index % 5 === 0) live.print(`line ${index}`);
    }
    await delay(250);
    expect(await screen.lines()).toContain('line 495');
    expect(screen.sent.match(/\/240/g)?.length).toBeLessThanOrEqual(3);
  });

  test('times go on where nothing else happens', async () => {
    const screen = new TerminalScreen();
    const { activity, pass } = running();
    open(screen, activity).changed();
    pass(65_000);
    await expect
      .poll(async () => (await screen.lines()).join('\n'), { timeout: 5_000 })
      .toContain('1 m 05 s');
  });

  test.each([
    [40, 24],
    [200, 50],
    [30, 12],
  ])('another size, %dx%d, is obeyed at once and leaves nothing behind', async (columns, rows) => {
    const screen = new TerminalScreen();
    const { activity } = running();
    const live = open(screen, activity);
    live.print('above');
    await expect.poll(async () => rowsOf(await screen.lines()).length).toBe(3);
    await screen.resize(columns, rows);
    const lines = await screen.lines();
    expect(lines[0]).toBe('above');
    expect(lines.filter((line) => line.includes('/240'))).toHaveLength(1);
    expect(rowsOf(lines)).toHaveLength(3);
    for (const line of lines) expect(line.length).toBeLessThan(columns);
  });

  test('a window that is made small and wide again many times keeps what was printed', async () => {
    const screen = new TerminalScreen();
    const { activity } = running();
    const live = open(screen, activity);
    for (let index = 0; index < 5; index++) live.print(`line ${index}`);
    for (const columns of [60, 33, 120, 45, 80]) await screen.resize(columns, 24);
    live.print('after');
    await expect.poll(async () => await screen.lines()).toContain('after');
    const lines = await screen.lines();
    expect(lines.slice(0, 6)).toEqual([...Array.from({ length: 5 }, (_, index) => `line ${index}`), 'after']);
    expect(lines.filter((line) => line.includes('/240'))).toHaveLength(1);
  });

  test('its end leaves what was printed, and prints what comes later', async () => {
    const screen = new TerminalScreen();
    const { activity } = running();
    const live = open(screen, activity);
    live.changed();
    live.print('one');
    live[Symbol.dispose]();
    expect(await screen.lines()).toEqual(['one']);
    live.print('two');
    live.changed();
    await delay(250);
    expect(await screen.lines()).toEqual(['one', 'two']);
  });

  test('nothing to show is no line', async () => {
    const screen = new TerminalScreen();
    const { activity, builds } = activityAt();
    const live = open(screen, activity);
    builds('prepare of a', 'running');
    live.changed();
    expect(await screen.lines()).toEqual(['  … prepare of a    0 s']);
    builds('prepare of a', 'built');
    live.changed();
    await expect.poll(() => screen.lines()).toEqual([]);
  });
});
