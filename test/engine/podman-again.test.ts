import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { listedAgain } from '../../src/engine/podman/tried-again.ts';
import { engineFailure } from '../../src/engine/port/failure.ts';

const id = 'ab'.repeat(32);
const gone = `The engine refused (500) while listing containers: getting container from store "${id}": container not known`;
const noWait = { ...systemClock, sleep: () => Promise.resolve() };
const given = { clock: noWait, signal: undefined };

/** Fails so often with a message, and then answers. */
function failing(times: number, message: string) {
  let asked = 0;
  const request = async () => {
    asked += 1;
    if (asked <= times) throw engineFailure('refused', message, undefined);
    return asked;
  };
  return request;
}

test('a list is asked for again when something in it went meanwhile', async () => {
  expect(await listedAgain(failing(3, gone), given)).toBe(4);
});

test('one that never can be read says what is left over, and what to do', async () => {
  await expect(listedAgain(failing(99, gone), given)).rejects.toMatchObject({
    message: gone,
    hint: expect.stringContaining(`podman rm --force ${id}`),
  });
});

test('another refusal is told at once', async () => {
  const refused = failing(1, 'The engine refused (500) while listing containers: no space left on device');
  await expect(listedAgain(refused, given)).rejects.toThrow('no space left');
});
