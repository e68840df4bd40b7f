import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Shares } from '../src/base/shares.ts';

test('whatever holders ask for and in whatever order it arrives, together they never exceed the limit', () => {
  const step = fc.record({
    who: fc.integer({ min: 0, max: 4 }),
    uses: fc.integer({ min: 0, max: 5 }),
    wants: fc.integer({ min: 0, max: 5 }),
    /**
     * What becomes of the renewal: its answer arrives, or is lost, or it arrives itself after the next one.
     */
    fate: fc.constantFrom('answered', 'lost', 'late'),
    ms: fc.integer({ min: 0, max: 4_000 }),
  });
  const limit = 3;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const shares = new Shares(600_000);
      const granted = new Map<number, number>();
      const used = new Map<number, number>();
      const late: (() => void)[] = [];
      let now = 0;
      let sequence = 0;
      for (const { who, uses, wants, fate, ms } of steps) {
        now += ms;
        const cap = granted.get(who) ?? 0;
        const own = Math.min(uses, cap);
        const asks = Math.max(own, wants);
        const keep = Math.max(own, Math.min(cap, asks));
        const renewal = { holder: String(who), sequence: ++sequence, keep, wants: asks, limit };
        // Until the answer arrives, the holder uses no more than it keeps.
        granted.set(who, keep);
        if (fate === 'late') late.push(() => shares.renew(renewal, now));
        else {
          const grant = shares.renew(renewal, now);
          // Requests in flight go on, whatever the answer.
          if (fate === 'answered') granted.set(who, Math.max(grant, own));
          for (const arrive of late.splice(0)) arrive();
        }
        used.set(who, own);
        const most = [...granted.values()].reduce((sum, count) => sum + count, 0);
        expect(most).toBeLessThanOrEqual(limit);
      }
    }),
    { numRuns: 500 },
  );
});

test('permits go round where more want them than there are, and those of a silent holder come back', () => {
  const shares = new Shares(60_000);
  const holders = ['a', 'b', 'c', 'd'];
  const had = new Map<string, number>();
  const caps = new Map<string, number>();
  let sequence = 0;
  for (let now = 0; now < 120_000; now += 500) {
    for (const holder of holders) {
      const keep = caps.get(holder) ?? 0;
      const grant = shares.renew({ holder, sequence: ++sequence, keep, wants: 2, limit: 2 }, now);
      caps.set(holder, grant);
      had.set(holder, (had.get(holder) ?? 0) + grant);
    }
  }
  const [least = 0, most = 0] = [Math.min(...had.values()), Math.max(...had.values())];
  expect(least).toBeGreaterThan(most / 3);
  expect(shares.renew({ holder: 'e', sequence: ++sequence, keep: 0, wants: 2, limit: 2 }, 200_000)).toBe(2);
});
