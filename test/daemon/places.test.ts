import { expect, test } from 'vitest';
import { type Place, Places } from '../../src/agent/daemon/places.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';

/** Looks by a clock that stands still until time is passed, without jitter. */
function placesOf(daemon: object) {
  let now = 0;
  const { daemon: settings } = ConfigFile.parse({ daemon });
  const places = new Places(settings, { monotonic: () => now, random: () => 0.5 });
  /** All looks that are due within so many milliseconds, as they would be made. */
  const pass = (ms: number, bring: (place: Place) => 'something' | 'nothing' = () => 'nothing') => {
    const looks: string[] = [];
    for (const end = now + ms; ; ) {
      const next = places.next();
      if (!next || now + next.inMs > end) {
        now = end;
        return looks;
      }
      now += next.inMs;
      looks.push(`${now / 1000} ${next.place.id}`);
      places.looked(next.place, bring(next.place));
    }
  };
  return { places, pass, settings };
}

test('a case without runs is looked at less and less often, down to the configured interval', () => {
  const { pass } = placesOf({ cases: ['a'], poll: { min: '1s', max: '10s' } });
  expect(pass(40_000)).toEqual(['0 a', '2 a', '6 a', '14 a', '24 a', '34 a']);
});

test('where one case brings something, all others are looked at soon', () => {
  const { pass } = placesOf({ cases: ['a', 'b'], poll: { min: '1s', max: '100s' } });
  pass(60_000);
  const looks = pass(70_000, ({ id }) => (id === 'a' ? 'something' : 'nothing'));
  const found = looks.findIndex((look) => look.endsWith(' a'));
  const next = looks.findIndex((look, at) => at > found && look.endsWith(' b'));
  const seconds = (at: number) => Number.parseFloat(looks[at] ?? '');
  expect(seconds(next) - seconds(found)).toBeLessThanOrEqual(1);
});

test('however many idle cases there are, they make about one request a second', () => {
  const cases = Array.from({ length: 100 }, (_, n) => `case-${n}`);
  const { pass } = placesOf({ cases, poll: { min: '1s', max: '5s' } });
  pass(1_000_000);
  expect(pass(1_000_000)).toHaveLength(1_000);
});

test('a place that failed counts as looked at, is told of once, and is looked at again', () => {
  const { places, pass } = placesOf({ suites: ['s'], poll: { min: '1s', max: '10s' } });
  expect(places.allLooked).toBe(false);
  expect(places.failed({ kind: 'suite', id: 's' }, 'down')).toBe(true);
  expect(places.failed({ kind: 'suite', id: 's' }, 'down')).toBe(false);
  expect(places.allLooked).toBe(true);
  expect(places.troubles).toEqual([{ place: 'suite s', trouble: 'down' }]);
  expect(pass(10_000)).not.toHaveLength(0);
  expect(places.troubles).toEqual([]);
});

test('other settings take the place of those before, without forgetting what was known', () => {
  const { places, pass } = placesOf({ cases: ['a', 'b'] });
  pass(1_000);
  places.change(ConfigFile.parse({ daemon: { cases: ['b', 'c'] } }).daemon);
  expect(places.size).toBe(2);
  expect(places.next()).toMatchObject({ place: { id: 'b' }, known: true, inMs: 0 });
});
