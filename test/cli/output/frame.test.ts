import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import type { Activity } from '../../../src/cli/output/activity.ts';
import { activityLines, trialWords } from '../../../src/cli/output/activity-text.ts';
import { frameOf } from '../../../src/cli/output/frame.ts';
import { Output, plainText } from '../../../src/text/output.ts';
import { harmIn, hostileName } from '../../hostile/hostile-text.ts';
import { activityAt, trial } from './activity-fixture.ts';

const terminal = new Output({ write: () => undefined, isTTY: true });

function drawn(activity: Activity, columns: number, rows: number): string[] {
  const shown = (content: Parameters<Output['shown']>[0]) => terminal.shown(content);
  return frameOf(activity.state(), { size: { columns, rows }, words: trialWords, shown });
}

/** A batch in the middle: 100 trials run, 8 are done, and two steps are built. */
function busy(nameOf: (index: number) => string): Activity {
  const { activity, builds, pass, ends } = activityAt();
  activity.update({ kind: 'planned', trials: 240, spent: () => ({ tokens: 1_234_567, usd: 3.2 }) });
  builds('prepare of django__django-12345', 'running');
  builds('install of codex', 'other-agent');
  for (let index = 0; index < 108; index++) {
    const phase = index % 3 === 0 ? 'verify' : 'harness';
    activity.update({ kind: 'phase', phase, trial: trial(nameOf(index), `gpt-5-codex-high #${index % 4}`) });
    pass(1_500);
  }
  for (let index = 0; index < 8; index++) {
    activity.update({
      kind: 'finished',
      trial: trial(nameOf(index), `gpt-5-codex-high #${index % 4}`),
      verdict: index % 2 === 0 ? 'passed' : 'failed',
      ms: 60_000,
    });
  }
  ends('gone', 'void', 0);
  return activity;
}

const names: Record<string, (index: number) => string> = {
  short: (index) => `case-${index}`,
  long: (index) => `${'a-very-long-name-'.repeat(20)}${index}`,
  wide: (index) => `漢字の名前${'長'.repeat(60)}${index}`,
  hostile: (index) => `${hostileName}${index}`,
};
const sizes: [number, number][] = [
  [80, 24],
  [40, 10],
  [12, 4],
  [1, 1],
];

describe('with 100 running trials', () => {
  for (const [kind, nameOf] of Object.entries(names)) {
    for (const [columns, rows] of sizes) {
      test(`of ${kind} names the lines fit into ${columns}x${rows}, and send nothing of others`, () => {
        const frame = drawn(busy(nameOf), columns, rows);
        expect(frame.length).toBeLessThan(Math.max(2, rows));
        for (const line of frame) expect(stringWidth(line)).toBeLessThan(Math.max(2, columns));
        expect(harmIn(stripVTControlCharacters(frame.join('\n')))).toEqual([]);
        expect(stripVTControlCharacters(frame.join('\n'))).toBe(frame.join('\n'));
      });
    }
  }

  test('a terminal of 80x24 shows counts, use, time, builds, the longest trials, and how many more', () => {
    const frame = drawn(busy(names.long ?? String), 80, 24);
    expect(frame.slice(0, 5)).toEqual([
      '  ░░░░░░░░░░░░░░░  9/240  4 passed  4 failed  1 void',
      '  67 harness, 33 verify  1.2M tokens  $3.20  2 m 42 s, about 3 min left',
      '  … prepare of django__django-12345                      2 m 42 s',
      '  … install of codex                 by another process  2 m 42 s',
      '  … a-very-long-name-…-very-long-name-8  gpt-5-codex-high #0  harness  2 m 30 s',
    ]);
    expect(frame.at(-1)).toBe('    and 85 more');
    expect(frame).toHaveLength(20);
  });

  test('200x50 shows 40 of them', () => {
    const frame = drawn(busy(names.short ?? String), 200, 50);
    expect(frame[4]).toBe('  … case-8   gpt-5-codex-high #0  harness  2 m 30 s');
    expect(frame.filter((line) => line.includes('gpt-5-codex'))).toHaveLength(41);
    expect(frame.at(-1)).toBe('    and 59 more');
  });

  test('40 columns keep what tells trials apart', () => {
    const frame = drawn(busy(names.long ?? String), 40, 24);
    expect(frame.slice(0, 4)).toEqual([
      '  ░░░░░░░  9/240  4 passed  4 failed',
      '  1 void',
      '  67 harness, 33 verify  1.2M tokens',
      '  $3.20  2 m 42 s, about 3 min left',
    ]);
    expect(frame).toContain('  … a-v…e-8  gpt… #0  harness  2 m 30 s');
  });

  test('10 rows show counts and the longest of builds and trials', () => {
    const frame = drawn(busy(names.short ?? String), 80, 10);
    expect(frame.slice(2)).toEqual([
      '  … prepare of django__django-12345                      2 m 42 s',
      '  … install of codex                 by another process  2 m 42 s',
      '  … case-8  gpt-5-codex-high #0  harness  2 m 30 s',
      '    and 99 more',
    ]);
  });
});

test('nothing is drawn while nothing goes on', () => {
  expect(drawn(activityAt().activity, 80, 24)).toEqual([]);
});

test('a step and an outage have a line each, with the first line of the reason', () => {
  const { activity, pass } = activityAt();
  activity.update({ kind: 'step', title: 'starting the batch', state: 'begins' });
  activity.update({ kind: 'waiting', for: 'the model small', reason: '503 no\nmore' });
  pass(65_000);
  expect(drawn(activity, 80, 24)).toEqual([
    '  starting the batch  1 m 05 s',
    '  the model small has been down for 1 m 05 s: 503 no',
  ]);
});

test('the bar grows by a part of its width', () => {
  const { activity, ends } = activityAt();
  activity.update({ kind: 'planned', trials: 10 });
  ends('a', 'passed', 1);
  expect(drawn(activity, 51, 24)[0]).toBe('  █░░░░░░░░░  1/10  1 passed  0 failed  0 void');
});

test('the bar is full when all is done', () => {
  const { activity, ends } = activityAt();
  activity.update({ kind: 'planned', trials: 1 });
  ends('a', 'passed', 1);
  expect(drawn(activity, 51, 24)[0]).toBe('  ██████████  1/1  1 passed  0 failed  0 void');
});

describe('a plain line of what is going on', () => {
  const shown = (activity: Activity, width: number) =>
    plainText(activityLines(activity.state(), trialWords, width)).split('\n');

  test('names counts, builds, phases, the longest trial, use and time left, in few lines', () => {
    expect(shown(busy(names.short ?? String), 100)).toEqual([
      '  9 of 240 done, 4 passed, 4 failed, 1 void; prepare of django__django-12345 for 2 m 42 s;',
      '  install of codex by another process for 2 m 42 s; running: 67 harness, 33 verify;',
      '  longest: case-8 · gpt-5-codex-high #0 for 2 m 30 s; 1.2M tokens, $3.20; about 3 min left',
    ]);
  });

  test('says since when a model is down, not for how long it will be', () => {
    const { activity, pass } = activityAt();
    activity.update({ kind: 'waiting', for: 'the model small', reason: '503' });
    pass(34_000);
    expect(shown(activity, 100)).toEqual(['  the model small has been down for 34 s']);
  });

  test('is no wider than a narrow pipe, and safe whatever names are', () => {
    for (const nameOf of Object.values(names)) {
      for (const line of shown(busy(nameOf), 40)) {
        expect(stringWidth(line)).toBeLessThanOrEqual(40);
        expect(harmIn(line)).toEqual([]);
      }
    }
  });
});
