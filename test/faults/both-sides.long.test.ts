import { expect, test } from 'vitest';
import { openPlace } from '../cli/place.ts';
import { BothSides } from './both-sides.ts';

test.for([1, 2, 3, 4, 5, 6])(
  '300 trials end once each, on two machines, with lost answers, restores and ended leases (seed %i)',
  { timeout: 900_000 },
  async (seed) => {
    using place = openPlace();
    await using sides = await BothSides.open(place.folder, { seed, runs: 30 });
    sides.trouble = 0.3;
    for (let n = 0; n < 700; n++) await sides.step();
    await sides.heal();
    expect(await sides.disagreements()).toEqual([]);
    expect(sides.said.times).toBeGreaterThan(0);
    expect(sides.said.wrong).toEqual([]);
  },
);
