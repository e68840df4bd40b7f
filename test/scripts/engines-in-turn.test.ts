import { expect, test } from 'vitest';
import { engineRequest } from '../../scripts/engines/in-turn.ts';
import { engineTable } from '../../scripts/engines/table.ts';

test('without --engine, the tests run on the machine’s own engine', () => {
  expect(engineRequest(['test/engine'])).toBeUndefined();
});

test('one engine, several and all are named; the rest goes to vitest', () => {
  expect(engineRequest(['--engine', 'podman', 'test/engine', '--record'])).toEqual({
    names: ['podman'],
    record: true,
    vitestArgs: ['test/engine'],
  });
  expect(engineRequest(['--engine', 'podman,docker-28'])?.names).toEqual(['podman', 'docker-28']);
  expect(engineRequest(['--engine', 'all'])?.names).toEqual(engineTable.map(({ name }) => name));
});

test('a name that there is not is refused before any engine starts', () => {
  expect(() => engineRequest(['--engine', 'podman,docker-99'])).toThrow('There is no engine docker-99');
  expect(() => engineRequest(['--engine'])).toThrow('There is no engine');
});
