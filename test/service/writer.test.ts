import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { createWriter } from '../../src/service/store/stores.ts';

function openWriter() {
  const database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE numbers (number INTEGER PRIMARY KEY)');
  const insert = database.prepare('INSERT INTO numbers VALUES (?)');
  const stored = () =>
    database
      .prepare('SELECT number FROM numbers')
      .all()
      .map((row) => row.number);
  return { database, insert, stored, writer: createWriter(database) };
}

test('a change is told of after its commit, with what it returned', async () => {
  const { database, insert, stored, writer } = openWriter();
  const written = writer.write(() => {
    insert.run(1);
    return 'done';
  });
  expect(stored()).toEqual([]);
  expect(await written).toBe('done');
  expect([stored(), database.isTransaction]).toEqual([[1], false]);
});

test('a change that fails is undone alone; those beside it are kept', async () => {
  const { insert, stored, writer } = openWriter();
  const outcomes = await Promise.allSettled([
    writer.write(() => insert.run(1)),
    writer.write(() => {
      insert.run(2);
      throw new Error('after its insert');
    }),
    writer.write(() => insert.run(1)),
    writer.write(() => insert.run(3)),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
  expect(stored()).toEqual([1, 3]);
});

test('when the commit fails nobody is told of success', async () => {
  const { database, insert, stored, writer } = openWriter();
  database.exec('CREATE TABLE notes (number INTEGER REFERENCES numbers DEFERRABLE INITIALLY DEFERRED)');
  const outcomes = await Promise.allSettled([
    writer.write(() => insert.run(1)),
    writer.write(() => database.exec('INSERT INTO notes VALUES (99)')),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(stored()).toEqual([]);
  await writer.write(() => insert.run(2));
  expect(stored()).toEqual([2]);
});

test('flushing commits at once', async () => {
  const { insert, stored, writer } = openWriter();
  const written = writer.write(() => insert.run(1));
  writer.flush();
  expect(stored()).toEqual([1]);
  await written;
});
