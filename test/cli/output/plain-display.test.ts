import { afterEach, expect, test } from 'vitest';
import { activityLines, trialWords } from '../../../src/cli/output/activity-text.ts';
import { type PlainParts, plainDisplay } from '../../../src/cli/output/progress.ts';
import { Output } from '../../../src/text/output.ts';
import { handClock } from '../../agent/test-clock.ts';
import { activityAt } from './activity-fixture.ts';

let opened: Disposable | undefined;
afterEach(() => opened?.[Symbol.dispose]());

function open() {
  const clock = handClock();
  const printed: string[] = [];
  const err = new Output({ write: (line) => printed.push(line.trimEnd()) });
  const { activity, pass, ...happens } = activityAt();
  const lines: PlainParts['lines'] = () =>
    activity.isBusy ? activityLines(activity.state(), trialWords, 100) : undefined;
  const display = plainDisplay({ err, clock, lines });
  opened = display;
  /** Lets seconds pass one by one. */
  const seconds = async (count: number) => {
    for (let second = 0; second < count; second++) {
      pass(1_000);
      await clock.pass(1_000);
    }
  };
  return { clock, display, printed, seconds, ...happens };
}

test('a silent prepare of minutes prints a line each 15 s, with its name and its time', async () => {
  const { printed, seconds, builds } = open();
  builds('prepare of a', 'running');
  await seconds(240);
  expect(printed).toHaveLength(16);
  expect(printed.slice(0, 2)).toEqual(['  prepare of a for 15 s', '  prepare of a for 30 s']);
  expect(printed.at(-1)).toBe('  prepare of a for 4 m 00 s');
});

test('it prints no such line while others come, and one 15 s after the last', async () => {
  const { display, printed, seconds, runs } = open();
  runs('a');
  for (let index = 0; index < 6; index++) {
    await seconds(10);
    display.print(`line ${index}`);
  }
  expect(printed).toHaveLength(6);
  await seconds(14);
  expect(printed).toHaveLength(6);
  await seconds(1);
  expect(printed.at(-1)).toBe('  running: 1 harness; longest: a · worker #0 for 1 m 15 s');
});

test('it is silent while nothing goes on, and speaks within 15 s of what begins then', async () => {
  const { printed, seconds, builds } = open();
  await seconds(100);
  expect(printed).toEqual([]);
  builds('prepare of a', 'running');
  await seconds(15);
  expect(printed).toHaveLength(1);
  builds('prepare of a', 'built');
  await seconds(100);
  expect(printed).toHaveLength(1);
});

test('a clock that is set back does not silence it', async () => {
  const { clock, printed, seconds, builds } = open();
  builds('prepare of a', 'running');
  await seconds(5);
  clock.set(0);
  await seconds(30);
  expect(printed.length).toBeGreaterThanOrEqual(2);
});

test('its end ends it', async () => {
  const { clock, display, printed, seconds, builds } = open();
  builds('prepare of a', 'running');
  display[Symbol.dispose]();
  await seconds(60);
  expect(printed).toEqual([]);
  expect(clock.waits).toEqual([]);
});
