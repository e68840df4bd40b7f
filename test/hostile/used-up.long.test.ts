import { describe, expect, test } from 'vitest';
import { freshVerify } from '../../src/suite/plan.ts';
import { bench, sharedBench } from '../trial/shared-bench.ts';

/**
 * Commands that use up their sandbox. The kernel ends some of their processes, and a runtime with a kernel of
 * its own ends the sandbox as a whole. Either way the files that are left decide.
 */

sharedBench();

const memory = `python3 -c "
kept = []
while True: kept.append(bytearray(b'x') * 2 ** 24)"`;
const sharedMemory = 'head -c 2000000000 /dev/zero > /dev/shm/hoard';
const processes = `python3 -c "
import os, time
for _ in range(400):
  if os.fork() == 0: time.sleep(60); os._exit(0)"`;
const ways: [string, string][] = [
  ['memory', memory],
  ['memory with files', sharedMemory],
  ['processes', processes],
];
const prepare = 'echo wrong > result';
const verify = 'grep -qx right result';
const places: [string, typeof freshVerify][] = [
  ['a fresh sandbox', freshVerify],
  ['its own sandbox', { ...freshVerify, in: 'same' }],
];
const limits = { pids: 128 };

describe.concurrent.each(places)('work is graded in %s by what it left', (_, verifyPlace) => {
  const graded = { prepare, verify, verifyPlace };

  test.each(ways)('after it used up the %s of its sandbox', async (_what, uses) => {
    const [right, wrong] = await Promise.all([
      bench.trial(`echo right > result; ${uses}`, graded, limits),
      bench.trial(`${uses}; echo right > result2`, graded, limits),
    ]);
    expect(right.verdict, right.cause?.message).toBe('passed');
    expect(wrong, wrong.cause?.message).toMatchObject({ verdict: 'failed', verifySteps: [{ exitCode: 1 }] });
  });
});

describe.concurrent('work has failed', () => {
  test.each(ways)(
    'if it uses up the %s of its sandbox while it is graded',
    { timeout: 240_000 },
    async (_what, uses) => {
      const graded = { prepare: 'echo exit 1 > work.sh', verify: 'bash work.sh' };
      const work = `cat > work.sh <<'END'\n${uses}\nexit 1\nEND`;
      const result = await bench.trial(work, graded, limits);
      expect(result.verdict, result.cause?.message).toBe('failed');
    },
  );
});
