import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import type { BatchPage, LedgerChanges, TrialPage } from '../../src/viewer/model/shapes.ts';
import { openViewer, type Viewer } from '../../src/viewer/server/viewer.ts';
import { report } from '../ledger/queue-trial.ts';
import { fillBatch, finishTrial } from './filled-ledger.ts';
import { story } from './story.ts';

const secret = 'sk-0123456789abcdef0123456789';
let folder: string;
let ledger: Ledger;
let viewer: Viewer;
let token: string;
let batch: number;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'offsite-viewer-'));
  ledger = new Ledger(folder, systemClock);
  const found = await story(ledger);
  batch = await fillBatch(ledger, {
    id: 'batch_a',
    cases: ['one', 'two'],
    variants: ['v'],
    found: (caseName) =>
      caseName === 'one' ? { ...found, finalMessage: `the key is ${secret}` } : undefined,
  });
  viewer = await openViewer({ ledger, redactor: new Redactor([secret]), clock: systemClock });
  token = new URL(viewer.url).hash.slice('#token='.length);
});
afterAll(async () => {
  await viewer[Symbol.asyncDispose]();
  ledger[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});

const authorized = () => ({ authorization: `Bearer ${token}` });

/** Sends a request with any headers; `fetch` sets Host by itself. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const url = new URL(path, viewer.url);
  return new Promise<{ status: number; body: string; headers: Record<string, unknown> }>(
    (resolve, reject) => {
      const sent = request(
        { host: url.hostname, port: url.port, path: `${url.pathname}${url.search}`, method, headers },
        (response) => {
          let body = '';
          response.setEncoding('utf8').on('data', (chunk) => {
            body += chunk;
          });
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, body, headers: response.headers }),
          );
        },
      );
      sent.on('error', reject).end();
    },
  );
}

const json = async (path: string) => JSON.parse((await ask(path, authorized())).body) as unknown;

describe('data is refused', () => {
  test('without the token, and with another one', async () => {
    expect((await ask('/api/batches')).status).toBe(401);
    expect((await ask('/api/batches', { authorization: 'Bearer no' })).status).toBe(401);
    expect((await ask(`/api/batches?token=${token}`)).status).toBe(401);
    expect((await ask('/api/batches', authorized())).status).toBe(200);
  });

  test.each([
    ['a name that another site gave this address', { host: 'evil.example' }],
    ['a page of another origin', { origin: 'http://evil.example' }],
    ['a page of another port', { origin: 'http://127.0.0.1:1' }],
    ['a page of another site without Origin', { 'sec-fetch-site': 'cross-site' }],
    ['a sandboxed frame', { origin: 'null' }],
  ])('to %s, even with the token', async (_, headers) => {
    expect((await ask('/api/batches', { ...authorized(), ...headers })).status).toBe(403);
    expect((await ask('/', headers)).status).toBe(403);
  });

  test('to anything that is not a GET', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
      expect((await ask('/api/batches', authorized(), method)).status).toBe(405);
  });
});

test('another site can open the page in a tab, which has no data, and nothing else', async () => {
  const opening = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
  const tab = { ...opening, 'sec-fetch-dest': 'document' };
  expect((await ask('/', tab)).status).toBe(200);
  expect((await ask('/', { ...opening, 'sec-fetch-dest': 'iframe' })).status).toBe(403);
  expect((await ask('/main.js', tab)).status).toBe(403);
  expect((await ask('/api/batches', { ...authorized(), ...tab })).status).toBe(403);
});

test('every answer forbids what the page does not need', async () => {
  for (const path of ['/', '/main.js', '/api/batches', '/api/none', '/none']) {
    const { headers } = await ask(path, authorized());
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    });
  }
});

test('the page is its own files, and none of them names another server', async () => {
  const page = await ask('/');
  expect(page.headers['content-type']).toContain('text/html');
  expect(page.body).not.toMatch(/<script(?![^>]*src=)|style=|https?:/);
  expect((await ask('/main.js')).body).toMatch(/Jason Miller.*Kevin Decker/s);
  expect((await ask('/main.css')).body).not.toMatch(/url\((?!["']?data:)|@import/);
});

test('the page carries no schemas of files, which are larger than itself and ask for eval', async () => {
  expect((await ask('/main.js')).body).not.toContain('ZodError');
});

test('known keys are removed from what was stored before they were known', async () => {
  const trials = ((await json(`/api/batches/${batch}`)) as { trials: { key: number }[] }).trials;
  const { body } = await ask(`/api/trials/${trials[0]?.key}`, authorized());
  expect(body).toContain('the key is [redacted]');
  expect(body).not.toContain(secret);
  const whole = await ask(`/api/trials/${trials[0]?.key}/value?pointer=`, authorized());
  expect(whole.body).not.toContain(secret);
});

test('a stored content is only ever a file to download', async () => {
  const { sha256 } = await ledger.blobs.put(Buffer.from('<script>alert(1)</script>'));
  const { headers, body } = await ask(`/api/blobs/${sha256}`, authorized());
  expect(headers).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': 'attachment',
  });
  expect(body).toBe('<script>alert(1)</script>');
  expect((await ask(`/api/blobs/${'0'.repeat(64)}`, authorized())).status).toBe(404);
  expect((await ask('/api/blobs/..%2f..%2fledger.db', authorized())).status).toBe(404);
});

test('a long text of a record comes cut, and whole when it is asked for', async () => {
  const output = `${'a'.repeat(30_000)}\n${'z'.repeat(30_000)}`;
  const key = await fillBatch(ledger, {
    id: 'batch_long',
    cases: ['one'],
    variants: ['v'],
    found: () => ({
      verdict: 'failed',
      verifySteps: [{ command: 'x', exitCode: 1, output, outputTruncated: false }],
    }),
  });
  const [trial] = ((await json(`/api/batches/${key}`)) as { trials: { key: number }[] }).trials;
  const page = (await json(`/api/trials/${trial?.key}`)) as TrialPage;
  const pointer = '/verifySteps/0/output';
  expect(page.found?.cuts).toEqual({ [pointer]: output.length });
  const shown = page.found?.record.verifySteps?.[0]?.output ?? '';
  expect(shown).toMatch(/^a+\n… \d+ characters left out …\nz+$/);
  expect(shown.length).toBeLessThan(5_000);
  const value = (limit: string) =>
    ask(`/api/trials/${trial?.key}/value?pointer=${pointer}${limit}`, authorized());
  expect((await value('')).body).toBe(output);
  expect((await value('&limit=1000')).body.length).toBeLessThan(1_100);
  expect((await ask(`/api/trials/${trial?.key}/value?pointer=/no`, authorized())).status).toBe(404);
});

test('a record that a newer Offsite wrote is named, and the rest of the trial is shown', async () => {
  const key = await fillBatch(ledger, {
    id: 'batch_newer',
    cases: ['one'],
    variants: ['v'],
    found: () => undefined,
  });
  const [trial] = ledger.queue.ofBatch(key);
  const attempt = ledger.trials.beginAttempt(trial?.key ?? 0);
  await ledger.trials.finish(attempt, { verdict: 'passed', result: { version: 999 }, report });
  const page = (await json(`/api/trials/${trial?.key}`)) as TrialPage;
  expect(page.unreadable).toContain('newer Offsite');
  expect(page.trial.verdict).toBe('passed');
  expect(((await json(`/api/batches/${key}`)) as BatchPage).trials).toMatchObject([
    { key: trial?.key, reason: expect.stringContaining('newer Offsite') },
  ]);
});

test('what is no number is no batch and no trial', async () => {
  for (const path of ['/api/batches/foo', '/api/batches/NaN', '/api/trials/foo', '/api/batches/1.5'])
    expect((await ask(path, authorized())).status).toBe(404);
});

test('a change in the ledger is told to who listens', async () => {
  const [, queued] = ledger.queue.ofBatch(batch);
  const { last } = (await json('/api/changes')) as LedgerChanges;
  const changes = json(`/api/changes?after=${last}`);
  await finishTrial(ledger, queued?.key ?? 0, { verdict: 'passed' });
  expect(await changes).toMatchObject({ batches: [batch], trials: [queued?.key] });
  // Who asks late misses nothing.
  expect(await json(`/api/changes?after=${last}`)).toMatchObject({ trials: [queued?.key] });
  // Who wants to know whether the server is back does not wait for a change.
  const now = (await json('/api/changes')) as LedgerChanges;
  expect(await json(`/api/changes?after=${now.last}&wait=0`)).toEqual(now);
});
