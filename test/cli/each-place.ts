import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { openPlace, type Place } from './place.ts';

/** The place of the test or the file that runs, in files that call one of the functions below. */
export let place: Place;

const open = () => {
  place = openPlace();
};
const close = () => place?.[Symbol.dispose]();

/** Gives each test of a file a place of its own. Call it in the file. */
export function eachPlace(): void {
  beforeEach(open);
  afterEach(close);
}

/** Gives the tests of a file one place. Call it in the file. */
export function sharedPlace(): void {
  beforeAll(open);
  afterAll(close);
}
