import { describe, expect, test } from 'vitest';
import { filled, killed, type NamedFault, serviceFaults, setBack } from './faults.ts';
import { survive } from './inject.ts';

/** Milliseconds: two to four lives of an agent with real trials each, on a machine that does much else. */
const timeout = 240_000;

/**
 * A choice of what `npm run test:faults` does at every point. Every other one meets a service with claims.
 */
const chosen: [string, NamedFault][] = [
  ['killed when the service had started the batch, before it could note so', killed(3)],
  ['killed while trials ran', killed(10)],
  ['whose disk fills up while trials run', filled(10)],
  ['killed when a result was kept, before it was reported', killed(12)],
  ['whose clock is set back while trials run', setBack(10)],
  ['killed when a report was accepted, before it could note so', killed(13)],
  ...serviceFaults
    .filter(({ name }) => name.includes('lost'))
    .map((fault): [string, NamedFault] => [`whose ${fault.name}`, fault]),
];
const cases = chosen.map(([name, fault], index) => ({ name, fault, claims: index % 2 === 1 }));

describe.concurrent('every trial is reported, and accepted once, by an agent', () => {
  test.each(cases)('$name (claims: $claims)', { timeout }, async ({ fault, claims }) => {
    const { lost, duplicates, claimed, said } = await survive(fault, { claims });
    expect({ lost, duplicates, hasClaimed: claimed > 0 }, said).toEqual({
      lost: 0,
      duplicates: 0,
      hasClaimed: claims,
    });
  });
});

/** Points of a life with a set of three batches, of 82. */
const pointsOfASet = [
  ['planned, before a batch of it was started', 2],
  ['asking the service to start its first batch', 4],
  ['whose first batch the service had started, before it could note so', 5],
  ['between its first batch and its second', 30],
  ['whose second batch works', 47],
] as const;

describe('a set of batches goes on after a kill -9, and nothing of it is started twice', () => {
  test.each(pointsOfASet)('%s', { timeout }, async (_, point) => {
    const { lost, duplicates, points, said } = await survive(killed(point), { cases: 5 });
    expect({ lost, duplicates, points }, said).toEqual({ lost: 0, duplicates: 0, points: undefined });
  });
});
