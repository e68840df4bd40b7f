import { expect, test } from 'vitest';
import { type PollTarget, PollTargets } from '../../src/agent/daemon/poll-targets.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';

/** Poll targets with a clock that moves only when the test moves it, without jitter. */
function targetsOf(daemon: object) {
  let now = 0;
  const { daemon: settings } = ConfigFile.parse({ daemon });
  const targets = new PollTargets(settings, { clock: { monotonic: () => now }, random: () => 0.5 });
  /** All looks that are due within so many milliseconds, in the order in which the poll makes them. */
  const pass = (ms: number, bring: (target: PollTarget) => 'something' | 'nothing' = () => 'nothing') => {
    const looks: string[] = [];
    for (const end = now + ms; ; ) {
      const next = targets.next();
      if (!next || now + next.inMs > end) {
        now = end;
        return looks;
      }
      now += next.inMs;
      looks.push(`${now / 1000} ${next.target.id}`);
      targets.polled(next.target, bring(next.target));
    }
  };
  return { targets, pass, settings };
}

test('a case without runs is looked at less and less often, down to the configured interval', () => {
  const { pass } = targetsOf({ cases: ['a'], poll: { min: '1s', max: '10s' } });
  expect(pass(40_000)).toEqual(['0 a', '2 a', '6 a', '14 a', '24 a', '34 a']);
});

test('where one case brings something, all others are looked at soon', () => {
  const { pass } = targetsOf({ cases: ['a', 'b'], poll: { min: '1s', max: '100s' } });
  pass(60_000);
  const looks = pass(70_000, ({ id }) => (id === 'a' ? 'something' : 'nothing'));
  const found = looks.findIndex((look) => look.endsWith(' a'));
  const next = looks.findIndex((look, at) => at > found && look.endsWith(' b'));
  const seconds = (at: number) => Number.parseFloat(looks[at] ?? '');
  expect(seconds(next) - seconds(found)).toBeLessThanOrEqual(1);
});

test('however many idle cases there are, they make about one request a second', () => {
  const cases = Array.from({ length: 100 }, (_, n) => `case-${n}`);
  const { pass } = targetsOf({ cases, poll: { min: '1s', max: '5s' } });
  pass(1_000_000);
  expect(pass(1_000_000)).toHaveLength(1_000);
});

test('a target that failed counts as looked at, is told of once, and is looked at again', () => {
  const { targets, pass } = targetsOf({ suites: ['s'], poll: { min: '1s', max: '10s' } });
  expect(targets.allPolled).toBe(false);
  expect(targets.failed({ kind: 'suite', id: 's' }, 'down')).toBe(true);
  expect(targets.failed({ kind: 'suite', id: 's' }, 'down')).toBe(false);
  expect(targets.allPolled).toBe(true);
  expect(targets.failures).toEqual([{ target: 'suite s', failure: 'down' }]);
  expect(pass(10_000)).not.toHaveLength(0);
  expect(targets.failures).toEqual([]);
});

test('changed settings replace the old ones and keep what is known about targets', () => {
  const { targets, pass } = targetsOf({ cases: ['a', 'b'] });
  pass(1_000);
  targets.change(ConfigFile.parse({ daemon: { cases: ['b', 'c'] } }).daemon);
  expect(targets.size).toBe(2);
  expect(targets.next()).toMatchObject({ target: { id: 'b' }, known: true, inMs: 0 });
});
