import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { daemon, shell } from '../engine/engine-fixture.ts';
import { openValidatorBench, type ValidatorBench } from '../validate/validator-bench.ts';

/** What is sent without end by ways on which little is expected. */

let bench: ValidatorBench;
beforeAll(async () => {
  bench = await openValidatorBench();
});
afterAll(() => bench?.[Symbol.asyncDispose]());

/** MiB by which this process grew at most while the work was done. */
async function growthDuring(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage.rss();
  let most = 0;
  const over = new AbortController();
  const watch = async () => {
    while (!over.signal.aborted) {
      most = Math.max(most, process.memoryUsage.rss() - before);
      await delay(50);
    }
  };
  const watching = watch();
  try {
    await work();
  } finally {
    over.abort();
    await watching;
  }
  return most / 2 ** 20;
}

test('a shell that an agent put in place of the sandbox’s own prints 600 MiB to a small command of ours', async () => {
  const container = await bench.another();
  await shell(container, daemon('sleep 100'));
  const flood = '#!/bin/bash\nexec head -c 600M /dev/zero\n';
  await container.put([{ path: 'usr/bin/dash', content: flood, mode: 0o755 }]);
  const grown = await growthDuring(async () => {
    expect(await container.killAll()).toBe('restarted');
  });
  expect(grown).toBeLessThan(200);
  expect(await container.processes()).toEqual([]);
});
