import type { Ledger } from '../../src/ledger/ledger.ts';
import type { Found } from './filled-ledger.ts';

const start = 1_000_000;

const failure = `ok 1 - subtracts
not ok 2 - adds
  AssertionError [ERR_ASSERTION]: 4 !== 3
    at test.js:3:1
# fail 1
`;

async function kept(ledger: Ledger, text: string | Uint8Array): Promise<string> {
  return (await ledger.blobs.put(Buffer.from(text))).sha256;
}

/** A record with something of every kind: the work of an agent that fixed a file, and did not pass. */
export async function story(ledger: Ledger): Promise<Found> {
  const before = 'export function add(a, b) {\n  return a - b;\n}\n\nexport const one = 1;\n';
  const after = 'export function add(a, b) {\n  return a + b + 1;\n}\n\nexport const one = 1;\n';
  const file = (content: string, byteSize: number) => ({
    type: 'file' as const,
    mode: 0o644,
    byteSize,
    content,
  });
  const command = (name: string, at: number, exitCode: number, output: string) => ({
    _tag: 'command' as const,
    command: name,
    exitCode,
    output,
    startedAtMillis: start + at,
    finishedAtMillis: start + at + 700,
  });
  const exchange = (at: number, inputTokens: number, status = 200) => ({
    role: 'agent' as const,
    model: 'large-1',
    wire: 'openai-responses',
    path: '/v1/responses',
    streamed: true,
    startedAt: start + at,
    firstByteAt: start + at + 400,
    finishedAt: start + at + 2_100,
    status,
    failedTries: status === 200 ? [] : [{ at: start + at, reason: '503 overloaded' }],
    usage: {
      inputTokens,
      outputTokens: 210,
      cacheReadTokens: inputTokens / 2,
      totalTokens: inputTokens + 210,
      costUsd: 0.0123,
    },
    requestBytes: 18_000,
    responseBytes: 3_300,
  });
  const usage = {
    inputTokens: 5_600,
    outputTokens: 630,
    cacheReadTokens: 2_800,
    totalTokens: 6_230,
    costUsd: 0.0369,
  };
  const requestBody = await kept(
    ledger,
    JSON.stringify({ model: 'large-1', input: [{ role: 'user', content: 'Fix add.' }] }),
  );
  return {
    verdict: 'failed',
    subject: {
      caseName: 'fix-add',
      ordinal: 0,
      model: 'large-1',
      harness: 'codex',
      image: 'offsite/base',
      network: 'models',
      prompt: 'The function `add` in math.js is wrong. Fix it, and run the tests.',
      verify: 'npm test\nnode check.js\n',
    },
    startedAt: start,
    finishedAt: start + 41_000,
    phases: [
      { name: 'sandbox', startedAt: start, durationMs: 1_200 },
      { name: 'harness', startedAt: start + 1_200, durationMs: 30_000 },
      { name: 'collect', startedAt: start + 31_200, durationMs: 800 },
      { name: 'verify', startedAt: start + 32_000, durationMs: 6_000 },
      { name: 'validate', startedAt: start + 38_000, durationMs: 3_000 },
    ],
    environment: [
      {
        phase: 'install',
        description: 'npm install -g @openai/codex',
        exitCode: 0,
        durationMs: 41_000,
        log: await kept(ledger, 'added 12 packages in 40s\n'),
      },
      { phase: 'prepare', description: 'npm ci', exitCode: 0, durationMs: 9_000 },
    ],
    harness: { ended: 'exited', exitCode: 0 },
    harnessVersion: '0.50.0',
    trajectory: [
      command('cat math.js', 5_000, 0, before),
      command('npm test', 16_000, 1, '\u001b[31mnot ok 1\u001b[0m - adds\n  AssertionError: 4 !== 3\n'),
      command('sed -i "s/a - b/a + b + 1/" math.js', 22_000, 0, ''),
    ],
    harnessTellsCommands: true,
    events: [
      { kind: 'message', at: start + 4_400, text: 'I look at the file first.' },
      {
        kind: 'tool',
        at: start + 12_000,
        finishedAt: start + 12_400,
        name: 'read_file',
        input: { path: 'math.js' },
        output: before,
      },
      { kind: 'user', at: start + 14_000, text: 'Please also run the tests.' },
      { kind: 'message', at: start + 30_000, text: 'Fixed: `add` now adds.\n\nAll tests should pass.' },
    ],
    finalMessage: 'Fixed: `add` now adds.',
    turns: 2,
    models: {
      exchanges: [
        { ...exchange(1_900, 1_200), requestBody },
        exchange(9_000, 2_000),
        exchange(18_500, 2_400, 503),
      ],
      connections: [
        {
          host: 'registry.example',
          port: 443,
          startedAt: start + 17_000,
          finishedAt: start + 17_300,
          sentBytes: 900,
          receivedBytes: 18_000,
        },
      ],
      usage: [{ role: 'agent', model: 'large-1', requests: 3, usage, pricesOf: '2026-10-01' }],
      modelMs: 6_300,
      agent: { acted: true },
    },
    filesChanged: ['math.js', 'logo.png', 'node_modules/.cache/build.bin'],
    filesChangedCount: 3,
    changes: [
      {
        path: 'math.js',
        kind: 'modified',
        before: file(await kept(ledger, before), before.length),
        after: file(await kept(ledger, after), after.length),
      },
      {
        path: 'logo.png',
        kind: 'added',
        omitted: 'binary',
        after: { type: 'file', mode: 0o644, byteSize: 68 },
      },
      {
        path: 'node_modules/.cache/build.bin',
        kind: 'added',
        omitted: 'binary',
        after: { type: 'file', mode: 0o644, byteSize: 68 },
      },
    ],
    artifacts: [
      { path: 'out/report.txt', ...(await ledger.blobs.put(Buffer.from('All is well.\n'))) },
      { path: 'out/logo.png', ...(await ledger.blobs.put(Buffer.from(onePixel, 'base64'))) },
    ],
    verifySteps: [
      {
        command: 'npm test',
        exitCode: 1,
        outputTruncated: false,
        startedAt: start + 32_100,
        durationMs: 4_000,
        output: failure,
      },
      {
        command: 'node check.js',
        exitCode: 0,
        outputTruncated: false,
        startedAt: start + 36_200,
        durationMs: 300,
        output: 'checked\n',
      },
    ],
    verifiedIn: 'fresh',
    validations: [
      {
        id: 'v1',
        index: 0,
        name: 'adds small numbers',
        exitCode: 1,
        status: 'failed',
        message: 'add(1, 2) is 4',
        startedAt: start + 38_100,
        durationMs: 900,
        calls: [{ index: 0, input: { text: '[1,2]' }, output: { text: '4' } }],
        logs: [{ index: 0, level: 'stdout', value: { text: 'calling add' } }],
      },
      {
        id: 'v2',
        index: 1,
        name: 'keeps its exports',
        exitCode: 0,
        status: 'passed',
        startedAt: start + 39_100,
        durationMs: 200,
      },
    ],
    validatedIn: 'fresh',
    judgments: [
      {
        name: 'is readable',
        model: 'judge-1',
        score: 0.4,
        threshold: 0.7,
        reason: 'It adds one for no reason.',
      },
    ],
  };
}

const onePixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
