import { describe, expect, test } from 'vitest';
import { readRewards } from '../../src/tasks/harbor/reward.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const read = (files: { json?: string; text?: string }) =>
  readRewards({
    json: files.json === undefined ? undefined : bytes(files.json),
    text: files.text === undefined ? undefined : bytes(files.text),
  });

describe('rewards', () => {
  test.each([
    [{ text: '1' }, { reward: 1 }],
    [{ text: ' 0.25\n' }, { reward: 0.25 }],
    [{ text: '-1e-3' }, { reward: -0.001 }],
    [{ text: '+.5' }, { reward: 0.5 }],
    [{ text: '1_000.' }, { reward: 1000 }],
    [{ text: '\ufeff1\r\n' }, { reward: 1 }],
    [{ json: '{"reward": 1}' }, { reward: 1 }],
    [{ json: '{"correct": 0.5, "fast": -2}' }, { correct: 0.5, fast: -2 }],
    [{ json: '0.75' }, { reward: 0.75 }],
    [{ json: '{"reward": 1}', text: '0' }, { reward: 1 }],
    [{ json: '0', text: '1' }, { reward: 0 }],
    [{ json: '{"a": 1, "a": 0}' }, { a: 0 }],
  ])('%j', (files, rewards) => {
    const found = read(files);
    expect(found.kind === 'rewards' && Object.fromEntries(found.rewards)).toEqual(rewards);
  });

  test('of a name that JavaScript gives to every object', () => {
    const found = read({ json: '{"__proto__": 1, "constructor": 0}' });
    expect(found.kind === 'rewards' && [...found.rewards]).toEqual([
      ['__proto__', 1],
      ['constructor', 0],
    ]);
  });
});

describe('what is no reward is a problem, and never 0', () => {
  test.each([
    [{}, 'the tests wrote neither reward.json nor reward.txt'],
    [{ text: '' }, 'reward.txt is empty'],
    [{ text: ' \n' }, 'reward.txt is empty'],
    [{ json: '' }, 'reward.json is empty'],
    [{ json: '', text: '1' }, 'reward.json is empty'],
    [{ text: 'NaN' }, 'reward.txt has NaN, which is not a finite number'],
    [{ text: '-inf' }, 'reward.txt has -inf, which is not a finite number'],
    [{ text: 'passed' }, 'reward.txt has "passed" in place of a number'],
    [{ text: '1 0' }, 'reward.txt has "1 0" in place of a number'],
    [{ text: '0x1' }, 'reward.txt has "0x1" in place of a number'],
    [{ json: '{"reward": NaN}' }, 'reward.json has NaN'],
    [{ json: '{"reward": -Infinity}' }, 'reward.json has -Infinity'],
    [{ json: '{"reward": 1e999}' }, 'reward.json has a reward "reward" that is not finite'],
    [{ json: '{"reward": "1"}' }, 'reward.json has a reward "reward" that is not a number'],
    [{ json: '{"reward": true}' }, 'reward.json has a reward "reward" that is not a number'],
    [{ json: '{"reward": null}' }, 'reward.json has a reward "reward" that is not a number'],
    [{ json: '{"a": {"b": 1}}' }, 'reward.json has a reward "a" that is not a number'],
    [{ json: '{}' }, 'reward.json names no reward'],
    [{ json: '[1]' }, 'reward.json has neither an object nor a number'],
    [{ json: 'null' }, 'reward.json has neither an object nor a number'],
  ])('%j', (files, problem) => {
    expect(read(files)).toEqual({ kind: 'none', problem });
  });

  test('text that is not JSON, or not UTF-8', () => {
    expect(read({ json: 'reward: 1' })).toMatchObject({ problem: expect.stringMatching(/is not JSON: /) });
    const found = readRewards({ json: undefined, text: new Uint8Array([0x31, 0xff]) });
    expect(found).toEqual({ kind: 'none', problem: 'reward.txt is not UTF-8' });
  });

  test('too much', () => {
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`r${n}`, n]));
    expect(read({ json: JSON.stringify(many) })).toMatchObject({ kind: 'none' });
    expect(read({ text: '1'.repeat(2 * 1024 ** 2) })).toEqual({
      kind: 'none',
      problem: 'reward.txt is larger than the limit of 1024 KiB',
    });
    expect(read({ json: '['.repeat(100_000) })).toMatchObject({ kind: 'none' });
  });
});
