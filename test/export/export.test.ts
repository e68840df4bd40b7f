import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { otlpHeaders, receiverUrl, sendSpans } from '../../src/export/send-spans.ts';
import { spanRequests } from '../../src/export/trial-spans.ts';
import { exportedTrials, openFolder, writeExport } from '../../src/export/write-export.ts';
import { findBatch, lastBatch } from '../../src/ledger/find.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { ExportedTrial } from '../../src/record/exported-trial.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { offsite } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { folder } from '../each-folder.ts';
import { eachLedger, ledger } from '../ledger/each-ledger.ts';
import { report } from '../ledger/queue-trial.ts';

eachLedger();
beforeEach(async () => {
  await fill();
});

/** A batch with a trial that failed in its second attempt, one that passed, and one that still runs. */
async function fill(): Promise<void> {
  const { sha256: after } = await ledger.blobs.put(Buffer.from('after\n'));
  const { key } = ledger.batches.add({
    service: 'embedded',
    id: 'batch_1',
    suite: 'Suite',
    file: undefined,
    runs: [{ id: 'run_1', taskIndex: 0, caseId: 'c', caseName: 'Case', variant: 'v' }],
  });
  const [run] = ledger.batches.runs(key);
  if (!run) throw new Error('there is a run');
  ledger.queue.add([{ key: run.key, setup: undefined, ordinals: [0, 1, 2] }]);
  const [failed, passed, running] = ledger.queue.ofBatch(key);
  if (!failed || !passed || !running) throw new Error('there are three trials');
  const spoilt = { kind: 'infrastructure', phase: 'sandbox', message: 'the engine went away' } as const;
  const first = ledger.trials.beginAttempt(failed.key);
  const result = { ...base, verdict: 'void', cause: spoilt } as const;
  await ledger.trials.abandonAttempt(first, 'void', spoilt, result);
  const results: [typeof failed, TrialRecord][] = [
    [failed, { ...failing, changes: [changed(after)] }],
    [passed, { version: recordVersion, ...base, verdict: 'passed' }],
  ];
  for (const [trial, found] of results) {
    const attempt = ledger.trials.beginAttempt(trial.key);
    await ledger.trials.finish(attempt, { verdict: found.verdict, result: found, report });
  }
  ledger.trials.beginAttempt(running.key);
}

const base = { startedAt: 1_000_000, finishedAt: 1_009_000, phases: [], modelUnmeasured: false };

const changed = (content: string) => ({
  path: 'a.txt',
  kind: 'added' as const,
  after: { type: 'file', mode: 0o644, byteSize: 6, content },
});

const failing: TrialRecord = {
  version: recordVersion,
  ...base,
  verdict: 'failed',
  phases: [
    { name: 'harness', startedAt: 1_001_000, durationMs: 5_000 },
    { name: 'verify', startedAt: 1_006_000, durationMs: 2_000 },
  ],
  trajectory: [{ _tag: 'command', command: 'ls', exitCode: 2, startedAtMillis: 1_002_000.25 }],
  events: [{ kind: 'tool', at: 1_003_000, finishedAt: 1_003_500, name: 'read', input: {} }],
  models: {
    exchanges: [
      {
        role: 'agent',
        model: 'm',
        wire: 'openai-chat',
        path: '/v1',
        streamed: false,
        status: 200,
        startedAt: 1_001_500,
        firstByteAt: 1_001_700,
        finishedAt: 1_001_900,
        failedTries: [],
        usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10, costUsd: 0.5 },
        answeredBy: 'm-2',
        requestBytes: 1,
        responseBytes: 1,
      },
    ],
    connections: [],
    usage: [
      {
        role: 'agent',
        model: 'm',
        requests: 1,
        usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10, costUsd: 0.5 },
      },
    ],
    modelMs: 400,
    agent: { acted: true },
  },
  verifySteps: [{ command: 'npm test', exitCode: 1, output: 'AssertionError: no', outputTruncated: false }],
  judgments: [{ name: 'taste', score: 0.4, threshold: 0.7, reason: 'dull' }],
};

const trials = (options?: Parameters<typeof exportedTrials>[2]) => [
  ...exportedTrials(ledger, lastBatch(ledger.records), options),
];

interface WireSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code?: number; message?: string };
  attributes: { key: string; value: Record<string, unknown> }[];
  events?: { name: string; attributes: WireSpan['attributes'] }[];
  links?: { traceId: string; spanId: string }[];
}

async function spans(of = trials()): Promise<WireSpan[]> {
  const found: WireSpan[] = [];
  for await (const request of spanRequests(of, (text) => text)) {
    for (const resource of JSON.parse(Buffer.from(request).toString()).resourceSpans)
      for (const scope of resource.scopeSpans) found.push(...scope.spans);
  }
  return found;
}

const attribute = (span: { attributes: WireSpan['attributes'] } | undefined, key: string) =>
  Object.values(span?.attributes.find((one) => one.key === key)?.value ?? {})[0];

describe('full records', () => {
  test('a trial has its record, its attempts and the texts that the record names', () => {
    const [failed, passed, ...others] = trials({ withOutputs: true });
    expect(others).toEqual([]);
    expect(ExportedTrial.parse(JSON.parse(JSON.stringify(failed)))).toEqual(
      JSON.parse(JSON.stringify(failed)),
    );
    expect(failed?.attempts).toMatchObject([
      { number: 1, ending: 'void', record: { cause: { message: 'the engine went away' } } },
      { number: 2, ending: 'failed' },
    ]);
    expect(Object.values(failed?.contents ?? {})).toEqual(['after\n']);
    expect(passed?.record.verdict).toBe('passed');
  });

  test('only trials with a verdict that was asked for, and no texts unless asked for', () => {
    expect(trials({ only: ['failed'] }).map(({ ordinal }) => ordinal)).toEqual([0]);
    expect(trials()[0]).not.toHaveProperty('contents');
  });
});

test('a record that cannot be read is left out and named; the others are exported', async () => {
  const row = ledger.records.get("SELECT result FROM trials WHERE verdict = 'failed'");
  writeFileSync(ledger.blobs.pathOf(String(row?.result)), 'damaged');
  const messages: string[] = [];
  expect(trials({ unreadable: (message) => messages.push(message) }).map(({ ordinal }) => ordinal)).toEqual([
    1,
  ]);
  expect(messages).toEqual([expect.stringContaining('is damaged')]);
});

test('a key that was told after the record was stored is in no part of it, not even as a name', async () => {
  const key = 'sk-a-key-that-was-told-later';
  const { key: batch } = ledger.batches.add({
    service: 'embedded',
    id: 'batch_2',
    suite: 'Suite',
    file: undefined,
    runs: [{ id: 'run_2', taskIndex: 0, caseId: 'c', caseName: 'Case', variant: 'v' }],
  });
  const [run] = ledger.batches.runs(batch);
  ledger.queue.add([{ key: run?.key ?? 0, setup: undefined, ordinals: [0] }]);
  const attempt = ledger.trials.beginAttempt(ledger.queue.ofBatch(batch)[0]?.key ?? 0);
  const events: TrialRecord['events'] = [
    { kind: 'tool', at: 1, name: 'read', input: { [key]: `${'x'.repeat(10_000)}${key}` } },
  ];
  const found: TrialRecord = { version: recordVersion, ...base, verdict: 'passed', events };
  await ledger.trials.finish(attempt, { verdict: 'passed', result: found, report });
  using later = new Ledger(folder, systemClock, { redactor: new Redactor([key]) });
  const [exported] = exportedTrials(later, findBatch(later.records, 'batch_2'));
  expect(JSON.stringify(exported)).toContain('[redacted]');
  expect(JSON.stringify(exported)).not.toContain(key.slice(-12));
});

describe('spans', () => {
  test('a trial is a trace of its phases with what happened in them', async () => {
    const all = await spans();
    const root = all.find((span) => span.name === 'trial Case');
    const children = all.filter(({ parentSpanId }) => parentSpanId === root?.spanId);
    expect(children.map(({ name }) => name)).toEqual(['invoke_agent harness', 'verify', 'attempt 1']);
    const agent = children[0];
    const within = all.filter(({ parentSpanId }) => parentSpanId === agent?.spanId);
    expect(within.map(({ name }) => name)).toEqual(['chat m', 'execute_tool shell', 'execute_tool read']);
    expect(new Set([root, ...children, ...within].map((span) => span?.traceId)).size).toBe(1);
    expect(within[1]?.startTimeUnixNano).toBe('1002000250000');
    expect(attribute(within[0], 'gen_ai.usage.input_tokens')).toBe(7);
    expect(attribute(within[0], 'gen_ai.response.model')).toBe('m-2');
    expect(root?.status).toEqual({ code: 2, message: 'verify: npm test exited 1: AssertionError: no' });
    expect(root?.events?.map((event) => attribute(event, 'gen_ai.evaluation.score.label'))).toEqual(['fail']);
  });

  test('times beyond those of OTLP, which old records hold, become the first or the last one', async () => {
    const [trial] = trials();
    if (!trial) throw new Error('there is a trial');
    const times = [1e300, -1e300, Number.POSITIVE_INFINITY, Number.NaN, 18_446_744_073_709.9];
    const events = times.map((at) => ({ kind: 'tool' as const, at, name: 'edit', input: {} }));
    const all = await spans([{ ...trial, record: { ...trial.record, events } }]);
    const tools = all.filter(({ name }) => name === 'execute_tool edit');
    const [first, last] = ['0', '18446744073709000000'];
    expect(tools.map((span) => span.startTimeUnixNano)).toEqual([first, last, last, last, last]);
    expect(tools.map((span) => span.endTimeUnixNano)).toEqual([first, last, last, last, last]);
  });

  test('each trial links to its batch, which comes last and spans them all', async () => {
    const all = await spans();
    const batch = all.at(-1);
    expect(batch?.name).toBe('batch Suite');
    const roots = all.filter(({ name }) => name.startsWith('trial '));
    expect(roots.map(({ links }) => links?.[0]?.spanId)).toEqual([batch?.spanId, batch?.spanId]);
  });

  test('a second export gives the same ids, and all ids are different', async () => {
    const ids = (await spans()).map(({ traceId, spanId }) => `${traceId} ${spanId}`);
    expect((await spans()).map(({ traceId, spanId }) => `${traceId} ${spanId}`)).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('a key in a message is removed', async () => {
    const redact = (text: string) => text.replaceAll('dull', '[redacted]');
    const [request] = await Array.fromAsync(spanRequests(trials(), redact));
    expect(Buffer.from(request ?? '').toString()).toContain('[redacted]');
    expect(Buffer.from(request ?? '').toString()).not.toContain('dull');
  });
});

describe('a receiver of spans', () => {
  /** Answers each request with the next status, the last one again and again. */
  async function receiver(statuses: number[], body = '{}') {
    const got: { url: string | undefined; headers: Record<string, unknown>; body: string }[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        got.push({ url: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() });
        response.writeHead(statuses[got.length - 1] ?? statuses.at(-1) ?? 200).end(body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const waits: number[] = [];
    const clock = { ...systemClock, now: () => 0, sleep: async (ms: number) => void waits.push(ms) };
    const url = receiverUrl(`http://127.0.0.1:${port}`);
    const to = { url, clock, random: () => 0.5, signal: new AbortController().signal };
    return { got, waits, to, [Symbol.asyncDispose]: async () => void server.close() };
  }

  test('gets the request with its headers at the path of the protocol', async () => {
    await using at = await receiver([200], '{"partialSuccess":{"rejectedSpans":"3"}}');
    const headers = otlpHeaders('X-Key=a%20b, other=1');
    expect(await sendSpans(Buffer.from('{"a":1}'), { ...at.to, headers })).toBe(3);
    expect(at.got).toMatchObject([
      { url: '/v1/traces', body: '{"a":1}', headers: { 'x-key': 'a b', other: '1' } },
    ]);
  });

  test('is asked again while it is busy, and not when it refuses', async () => {
    await using busy = await receiver([503, 429, 200]);
    expect(await sendSpans(Buffer.from('{}'), { ...busy.to, headers: {} })).toBe(0);
    expect(busy.waits).toHaveLength(2);
    await using refusing = await receiver([401], 'who are you?');
    await expect(sendSpans(Buffer.from('{}'), { ...refusing.to, headers: {} })).rejects.toMatchObject({
      code: 'OTLP_REFUSED',
      message: expect.stringContaining('401: who are you?'),
    });
    expect(refusing.got).toHaveLength(1);
  });

  test.each(['127.0.0.1:4318', 'ftp://a.example/', 'http://', 'http://user:a-password@127.0.0.1:4318'])(
    '%s is no address of one, and is not repeated',
    (given) => {
      const read = () => receiverUrl(given);
      expect(read).toThrowError(expect.objectContaining({ code: 'OTLP_URL_INVALID' }));
      expect(read).not.toThrowError(/a-password/);
    },
  );

  test.each(['a-secret', 'key=a-secret%0Ab', 'key=%E4'])(
    'headers that cannot be read (%s) are an error that does not repeat them',
    (setting) => {
      expect(() => otlpHeaders(setting)).toThrowError(/cannot be read$/);
    },
  );
});

describe('a file', () => {
  test('appears when it is whole, and replaces what was there', async () => {
    const file = join(folder, 'out.jsonl');
    for (const text of ['first', 'second']) await writeExport(file, (write) => write(text));
    expect(readFileSync(file, 'utf8')).toBe('second');
  });

  test('is not touched if something fails, and nothing is left', async () => {
    const file = join(folder, 'out.jsonl');
    await writeExport(file, (write) => write('first'));
    const failing = writeExport(file, async (write) => {
      await write('half');
      throw new Error('the ledger is damaged');
    });
    await expect(failing).rejects.toThrow('the ledger is damaged');
    expect(readFileSync(file, 'utf8')).toBe('first');
    expect(readdirSync(folder).filter((name) => name.includes('partial'))).toEqual([]);
    const nowhere = writeExport(join(folder, 'no/such'), (write) => write(''));
    await expect(nowhere).rejects.toMatchObject({ code: 'FILE_NOT_WRITTEN', kind: 'input' });
  });

  test('a folder appears when it is whole, and is never one that exists', async () => {
    const wanted = join(folder, 'job');
    {
      await using first = await openFolder(wanted);
      await first.put('trial/result.json', '{}');
    }
    expect(existsSync(wanted)).toBe(false);
    {
      await using second = await openFolder(wanted);
      await second.put('trial/result.json', '{}');
      await second.keep();
    }
    expect(readFileSync(join(wanted, 'trial/result.json'), 'utf8')).toBe('{}');
    await expect(openFolder(wanted)).rejects.toMatchObject({ code: 'FILE_NOT_WRITTEN', kind: 'input' });
    expect(readdirSync(folder).filter((name) => name.includes('partial'))).toEqual([]);
  });
});

test('`-` is standard output for an export, and no other option makes a file of that name', async () => {
  using place = openPlace();
  const run = (...args: string[]) => offsite(place, args, { dataFolder: folder });
  const { exitCode, stdout, stderr } = await run('export', '--json', '-');
  expect(exitCode, stderr).toBe(0);
  const verdicts = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).record.verdict);
  expect(verdicts).toEqual(['failed', 'passed']);
  for (const args of [
    ['export', '--harbor', '-'],
    ['run', 'suite.yaml', '--junit', '-'],
    ['export', '--csv', '-', '--json', '-'],
  ]) {
    const refused = await run(...args);
    expect(refused.exitCode, refused.stderr).toBe(2);
  }
  expect(existsSync(join(place.folder, '-'))).toBe(false);
  // For other commands --json takes no file, and says so.
  const written = await run('export', '--json', 'trials.json');
  expect(written.exitCode, written.stderr).toBe(0);
  expect(readFileSync(join(place.folder, 'trials.json'), 'utf8')).toBe(stdout);
  expect((await run('show', '--json=x.json')).stderr).toContain(
    '--json takes no file: write --json > x.json',
  );
});
