import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';

/**
 * The floor: the least that a durable service can do with a request. A bare hono server parses the body and
 * inserts it, fsynced. No keys, no checks, no group commit. It answers a list with as many characters as the
 * service does, because sending them costs the same for both. `node floor-server.ts FOLDER LENGTH`; writes
 * its URL to the parent.
 */
const database = new DatabaseSync(join(process.argv[2] ?? '.', 'floor.db'));
database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
database.exec('CREATE TABLE IF NOT EXISTS bodies (key INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT');
const insert = database.prepare('INSERT INTO bodies (body) VALUES (?)');

const page = JSON.stringify('x'.repeat(Number(process.argv[3])));
const application = new Hono();
application.post('/v1/:operation', async (context) => {
  const body = JSON.parse(await context.req.text());
  insert.run(JSON.stringify(body));
  const isList = context.req.param('operation') === 'evals.runs.list';
  return context.body(isList ? page : '{}', 200, { 'content-type': 'application/json' });
});

const server = createAdaptorServer({ fetch: application.fetch });
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.send?.(`http://127.0.0.1:${address.port}`);
});
process.once('disconnect', () => process.exit(0));
