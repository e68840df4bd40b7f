import { expect, test } from 'vitest';
import { openPlace } from '../cli/place.ts';
import { runs } from '../short-tests.ts';
import { BothSides } from './both-sides.ts';

test('ledgers and service agree in the end, whatever was lost or restored on either side', async () => {
  using place = openPlace();
  await using sides = await BothSides.open(place.folder, { seed: 7, runs: 3 });
  sides.trouble = 0.3;
  for (let n = 0; n < runs(120); n++) await sides.step();
  await sides.heal();
  expect(await sides.disagreements()).toEqual([]);
  expect(sides.said.times).toBeGreaterThan(0);
  expect(sides.said.wrong).toEqual([]);
});
