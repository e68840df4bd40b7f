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
      await delay(20);
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
  // Where a container starts with its shell, it ends when that has printed everything.
  const left = await container.processes().catch(({ message }: Error) => message);
  expect([[], expect.stringMatching(/not running|running containers/)]).toContainEqual(left);
});

test('a script prints 300 MB', async () => {
  const container = await bench.another();
  const script = 'head -c 300000000 /dev/zero | tr "\\0" x';
  const grown = await growthDuring(async () => {
    const { steps } = await container.runScript({ script, timeoutMs: 200_000 });
    expect(steps).toMatchObject([{ outputTruncated: true, outputBytes: 300_000_000 }]);
  });
  expect(grown).toBeLessThan(150);
});

const program = (body: string) => `#!/bin/bash\n${body}`;

test('a validator writes 150 MB without the end of a line where names of calls are expected', async () => {
  const grown = await growthDuring(async () => {
    const flood = `head -c 150000000 /dev/zero | tr '\\0' a > "$OFFSITE_CALLS/requests"; echo > "$OFFSITE_CALLS/requests"; offsite-run true`;
    expect(await bench.run(program(flood))).toMatchObject({ validations: [{ status: 'passed' }] });
  });
  expect(grown).toBeLessThan(150);
});

/** Leaves a call of the work with so much input, and whatever else there is to be read beside it. */
const call = (input: string, beside = '') =>
  program(`leave() {
  call=$(mktemp -d "$OFFSITE_CALLS/call-XXXXXXXXXX")
  printf '/\\0sleep\\0003\\0' > "$call/words"
  truncate -s ${input} "$call/input"
  ${beside}
  echo "\${call##*/}" > "$OFFSITE_CALLS/requests"
}`);

test('a validator leaves 600 MiB beside a call, of which nothing is read', async () => {
  const beside = 'for one in 1 2 3 4 5 6 7 8 9 10; do truncate -s 60M "$call/file$one"; done';
  const wait = 'until readlink "$call/code"; do sleep 0.1; done';
  const grown = await growthDuring(async () => {
    const run = await bench.run(`${call('1M', beside)}\nleave; ${wait}`);
    expect(run).toMatchObject({ validations: [{ status: 'passed' }] });
  });
  expect(grown).toBeLessThan(200);
});

test('a validator leaves ten calls of 60 MiB at a time: it is broken, and no infrastructure is', async () => {
  const grown = await growthDuring(async () => {
    const run = await bench.run(`${call('60M')}\nfor one in 1 2 3 4 5 6 7 8 9 10; do leave; done; sleep 20`);
    expect(run.failure).toMatchObject({ kind: 'broken', message: expect.stringContaining('128 MiB') });
  });
  expect(grown).toBeLessThan(400);
});

test('a validator takes a call away before it is read: nobody waits for an answer, and the next one has its own', async () => {
  const gone = 'leave; rm -r "$call"; offsite-run true && [ "$(offsite-run echo here)" = here ]';
  expect(await bench.run(`${call('1')}\n${gone}`)).toMatchObject({ validations: [{ status: 'passed' }] });
});

test('a validator names 100,000 calls at once: it is broken', async () => {
  const names = `yes call-aaaaaaaaaa | head -n 100000 > "$OFFSITE_CALLS/requests"; sleep 20`;
  const run = await bench.run(`${call('1')}\nleave; mv "$call" "$OFFSITE_CALLS/call-aaaaaaaaaa"; ${names}`);
  expect(run.failure).toMatchObject({ kind: 'broken', message: expect.stringContaining('calls') });
});

test('a validator asks for 1,600 MiB of files, and does not read what it is told', async () => {
  const container = await bench.another();
  await shell(container, 'truncate -s 16M big');
  const flood = `validate('floods', async ({ read }) => {
    for (let one = 0; one < 100; one++) read('big').catch(() => undefined);
    await new Promise((done) => setTimeout(done, 100));
    for (const end = Date.now() + 8_000; Date.now() < end; );
  });`;
  const grown = await growthDuring(() =>
    bench.run(flood, { work: { kind: 'apart', container }, timeoutMs: 10_000 }),
  );
  // About 500 for two files, their texts and uncollected garbage; all files together would need more than
  // 2,000.
  expect(grown).toBeLessThan(1000);
});
