import type { Ledger } from '../../src/ledger/ledger.ts';
import type { RandomIndex } from '../../src/stats/repeats.ts';
import { type Found, fillBatch } from '../../test/viewer/filled-ledger.ts';

const start = Date.UTC(2026, 0, 1);
const words = 'test file error expected received at line module build parse return value of node in'.split(
  ' ',
);

export interface Sizes {
  cases: number;
  variants: number;
  repeats: number;
  /** Entries of the big trial's timeline. */
  entries: number;
  /** Characters of the big trial's outputs. */
  outputs: number;
}

/** Fills a ledger with a batch of many trials, and a batch of one big trial. Resolves with their keys. */
export async function fill(ledger: Ledger, sizes: Sizes, random: RandomIndex) {
  const names = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
  const batch = await fillBatch(ledger, {
    id: 'batch_many',
    suite: 'many trials',
    repeats: sizes.repeats,
    cases: names(sizes.cases, 'case'),
    variants: names(sizes.variants, 'variant'),
    found: () => usualTrial(random),
  });
  const big = await fillBatch(ledger, {
    id: 'batch_big',
    suite: 'one big trial',
    cases: ['big'],
    variants: ['variant'],
    found: () => bigTrial(sizes, random),
  });
  return { batch, big };
}

function usualTrial(random: RandomIndex): Found {
  const exitCode = random(3) === 0 ? 1 : 0;
  return trialOf({ entries: 40, outputs: 40_000 }, random, exitCode);
}

function bigTrial({ entries, outputs }: Sizes, random: RandomIndex): Found {
  return trialOf({ entries, outputs }, random, 1);
}

/** A quarter of the entries each are commands, tools, messages and requests to a model. */
function trialOf(
  { entries, outputs }: Pick<Sizes, 'entries' | 'outputs'>,
  random: RandomIndex,
  exit: number,
) {
  const each = [...Array(Math.ceil(entries / 4)).keys()];
  const at = (index: number, part: number) => start + index * 4_000 + part * 1_000;
  const length = outputs / each.length / 2;
  const finishedAt = at(each.length, 0);
  const usage = { inputTokens: 4_000, outputTokens: 300, totalTokens: 4_300, costUsd: 0.01 };
  return {
    verdict: exit === 0 ? 'passed' : 'failed',
    startedAt: start,
    finishedAt,
    phases: [{ name: 'harness', startedAt: start, durationMs: finishedAt - start }],
    trajectory: each.map((index) => ({
      _tag: 'command',
      command: `npm test -- ${sentence(random, 4)}`,
      exitCode: random(4) === 0 ? 1 : 0,
      startedAtMillis: at(index, 0),
      finishedAtMillis: at(index, 1),
      output: output(random, length),
    })),
    events: each.flatMap((index) => [
      { kind: 'message' as const, at: at(index, 1), text: sentence(random, 20) },
      {
        kind: 'tool' as const,
        at: at(index, 2),
        finishedAt: at(index, 3),
        name: 'read_file',
        input: { path: `src/${sentence(random, 1)}.ts` },
        output: output(random, length),
      },
    ]),
    models: {
      exchanges: each.map((index) => ({
        role: 'agent',
        model: 'large',
        wire: 'openai-responses',
        path: '/v1/responses',
        streamed: true,
        startedAt: at(index, 3),
        finishedAt: at(index, 4),
        status: 200,
        failedTries: [],
        usage,
        requestBytes: 20_000,
        responseBytes: 3_000,
      })),
      connections: [],
      modelMs: each.length * 1_000,
      agent: { acted: true },
      usage: [{ role: 'agent', model: 'large', requests: each.length, usage }],
    },
    verifySteps: [
      { command: 'npm test', exitCode: exit, output: output(random, 2_000), outputTruncated: false },
    ],
  } satisfies Found;
}

function sentence(random: RandomIndex, count: number): string {
  return Array.from({ length: count }, () => words[random(words.length)]).join(' ');
}

/** Lines as tests print them: they repeat, but no two are the same. */
function output(random: RandomIndex, length: number): string {
  const lines: string[] = [];
  for (let written = 0; written < length; ) {
    const line = `${random(1_000_000)} ${sentence(random, 12)}`;
    lines.push(line);
    written += line.length + 1;
  }
  return lines.join('\n');
}
