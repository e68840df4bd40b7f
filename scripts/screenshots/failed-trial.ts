import type { Ledger } from '../../src/ledger/ledger.ts';
import type { HarnessEvent } from '../../src/record/harness.ts';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';

const before = String.raw`module.exports = function parse(text) {
  const match = /^(-?\d?\.?\d+) *(ms|s|m|h|d)?$/i.exec(text);
  if (!match) return undefined;
  const number = Number.parseFloat(match[1]);
  return number * (units[match[2]?.toLowerCase() ?? 'ms']);
};

const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
`;
const after = before.replace(String.raw`-?\d?\.?\d+`, String.raw`-?\d+\.?\d*`);

/** A green square. */
const picture =
  'iVBORw0KGgoAAAANSUhEUgAAABgAAAAYCAIAAABvFaqvAAAAH0lEQVR42mMQL7CiCmIYNWjUoFGDRg0aNWjUoIE3CAACKrJQn+jMbgAAAABJRU5ErkJggg==';

const tests = (passes: boolean) => `✔ reads whole numbers (0.91ms)
✔ reads negative decimals of any length (0.24ms)
${passes ? '✔' : '✖'} reads a decimal without a leading digit (1.37ms)
✔ refuses what is not a duration (0.18ms)
ℹ tests 4
ℹ pass ${passes ? 4 : 3}
ℹ fail ${passes ? 0 : 1}
${
  passes
    ? ''
    : `
✖ failing tests:

✖ reads a decimal without a leading digit (1.37ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

  undefined !== 1800000

      at TestContext.<anonymous> (durations.test.js:21:10)
`
}`;

/** Seconds since the trial began, the command, its seconds, exit code and output. */
const commands: [number, string, number, number, string][] = [
  [9, 'git log --oneline -5 && ls', 0.3, 0, '5aa8c3f Parse durations\nindex.js\ndurations.test.js\n'],
  [15, 'cat index.js', 0.2, 0, before],
  [24, 'node --test', 1.8, 1, 'ℹ tests 3\nℹ pass 2\nℹ fail 1\n'],
  [41, String.raw`sed -i 's/\\d?\\.?\\d+/\\d+\\.?\\d*/' index.js`, 0.2, 0, ''],
  [48, 'node --test', 1.7, 0, 'ℹ tests 3\nℹ pass 3\nℹ fail 0\n'],
  [58, `node -e "console.log(require('./index.js')('-10.5h'))"`, 0.4, 0, '-37800000\n'],
  [66, 'git diff --stat', 0.2, 0, ' index.js | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n'],
];

const messages: [number, string][] = [
  [8, 'I look at the repository first.'],
  [23, 'The pattern allows one digit before the point. I run the tests to see what fails.'],
  [40, 'The number needs `\\d+` before the point, and any digits after it.'],
  [57, 'The tests pass. I check the reported input.'],
  [74, "Done: `parse('-10.5h')` is -37800000. The change is one line of `index.js`."],
];

const requests = [2, 11, 17, 28, 43, 51, 60, 68];

/** The result of a trial whose agent fixed one input and broke another. */
export async function failedTrial(ledger: Ledger, start: number): Promise<TrialRecord> {
  const at = (seconds: number) => start + Math.round(seconds * 1_000);
  const kept = async (text: string) => (await ledger.blobs.put(Buffer.from(text))).sha256;
  const file = async (text: string) => ({
    type: 'file',
    mode: 0o644,
    byteSize: text.length,
    content: await kept(text),
  });
  const events: HarnessEvent[] = [
    ...messages.map(([seconds, text]) => ({ kind: 'message' as const, at: at(seconds), text })),
    {
      kind: 'tool',
      at: at(18),
      finishedAt: at(18.4),
      name: 'read_file',
      input: { path: 'durations.test.js' },
      output: "test('reads whole numbers', () => {",
    },
    { kind: 'user', at: at(1.6), text: 'Make parse() read a negative decimal of any length.' },
  ];
  const exchanges = requests.map((seconds, index) => ({
    role: 'agent' as const,
    model: 'small',
    wire: 'openai-responses',
    path: '/v1/responses',
    streamed: true,
    startedAt: at(seconds),
    firstByteAt: at(seconds + 0.9),
    status: 200,
    finishedAt: at(seconds + 4.6),
    failedTries: [],
    requestBytes: 9_000 + 2_200 * index,
    responseBytes: 2_400,
    usage: usageOf(2_100 + 640 * index, 180 + 20 * (index % 3), index * 640),
  }));
  const [inputTokens, outputTokens, cached] = (
    ['inputTokens', 'outputTokens', 'cacheReadTokens'] as const
  ).map((name) => exchanges.reduce((sum, { usage }) => sum + usage[name], 0));
  const usage = usageOf(inputTokens ?? 0, outputTokens ?? 0, cached ?? 0);
  return {
    version: recordVersion,
    verdict: 'failed',
    subject: {
      caseName: 'negative-durations',
      ordinal: 1,
      model: 'small',
      harness: 'bash',
      image: 'offsite/base',
      network: 'model',
      verify: 'node --check index.js\nnode --test\n',
      prompt: "parse('-10.5h') gives undefined. Make parse() read a negative decimal of any length.",
    },
    startedAt: start,
    finishedAt: at(84),
    phases: [
      { name: 'sandbox', startedAt: start, durationMs: 1_500 },
      { name: 'harness', startedAt: at(1.5), durationMs: 73_500 },
      { name: 'collect', startedAt: at(75), durationMs: 700 },
      { name: 'verify', startedAt: at(75.7), durationMs: 4_300 },
      { name: 'validate', startedAt: at(80), durationMs: 4_000 },
    ],
    environment: [{ phase: 'prepare', description: 'npm ci', exitCode: 0, durationMs: 8_200 }],
    harness: { ended: 'exited', exitCode: 0 },
    trajectory: commands.map(([seconds, command, took, exitCode, output]) => ({
      _tag: 'command',
      command,
      exitCode,
      output,
      startedAtMillis: at(seconds),
      finishedAtMillis: at(seconds + took),
    })),
    harnessTellsCommands: true,
    events,
    turns: 1,
    finalMessage: messages.at(-1)?.[1],
    models: {
      exchanges,
      connections: [],
      modelMs: 36_800,
      agent: { acted: true },
      usage: [{ role: 'agent', model: 'small', requests: exchanges.length, usage, pricesOf: '2026-01-01' }],
    },
    filesChanged: ['index.js'],
    filesChangedCount: 1,
    changes: [{ path: 'index.js', kind: 'modified', before: await file(before), after: await file(after) }],
    artifacts: [
      { path: 'index.js', ...(await ledger.blobs.put(Buffer.from(after))) },
      { path: 'out/coverage.png', ...(await ledger.blobs.put(Buffer.from(picture, 'base64'))) },
      { path: 'out/coverage.bin', ...(await ledger.blobs.put(Buffer.from([0xff, 0xfe, 0, 1]))) },
    ],
    verifySteps: [
      step('node --check index.js', 0, '', at(75.8), 300),
      step('node --test', 1, tests(false), at(76.3), 2_100),
    ],
    validations: [
      validation(0, 'negative decimals are read', at(80.2)),
      validation(1, 'a decimal needs no leading digit', at(81.5), "parse('.5h') is undefined"),
      validation(2, 'only index.js changed', at(82.8)),
    ],
    verifiedIn: 'fresh',
    validatedIn: 'fresh',
    modelUnmeasured: false,
  };
}

/** The result of a trial of which a picture shows only the verdict, the time and the cost. */
export function shortTrial(start: number, durationMs: number, passed: boolean, tokens: number): TrialRecord {
  const usage = usageOf(Math.round(tokens * 0.9), Math.round(tokens * 0.1), Math.round(tokens * 0.5));
  return {
    version: recordVersion,
    verdict: passed ? 'passed' : 'failed',
    startedAt: start,
    finishedAt: start + durationMs,
    phases: [{ name: 'harness', startedAt: start, durationMs: durationMs * 0.8 }],
    models: {
      exchanges: [],
      connections: [],
      modelMs: durationMs * 0.5,
      agent: { acted: true },
      usage: [{ role: 'agent', model: 'small', requests: 8, usage }],
    },
    verifySteps: [step('node --test', passed ? 0 : 1, tests(passed), start + durationMs * 0.9, 2_000)],
    modelUnmeasured: false,
  };
}

function usageOf(inputTokens: number, outputTokens: number, cacheReadTokens: number) {
  const totalTokens = inputTokens + outputTokens;
  return { inputTokens, outputTokens, cacheReadTokens, totalTokens, costUsd: totalTokens * 1.1e-6 };
}

function step(command: string, exitCode: number, output: string, startedAt: number, durationMs: number) {
  return { command, exitCode, output, outputTruncated: false, startedAt, durationMs };
}

function validation(index: number, name: string, startedAt: number, message?: string) {
  const failed = message !== undefined;
  const status = failed ? ('failed' as const) : ('passed' as const);
  const exitCode = failed ? 1 : 0;
  return {
    id: `v${index}`,
    index,
    name,
    status,
    exitCode,
    startedAt,
    durationMs: 900,
    ...(failed && { message }),
  };
}
