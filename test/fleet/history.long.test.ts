import { expect, test } from 'vitest';
import { openFleetPlace } from './fleet-place.ts';

/** `WORKFLOW_EXECUTION_STATUS_COMPLETED` of Temporal's API. */
const completed = 2;
const secret = 'sk-fleet-0123456789abcdefghijklmnop';

async function historyOf(fleet: Awaited<ReturnType<typeof openFleetPlace>>, codec: boolean) {
  const prompt = 'Whisper the word quincunx.';
  const env = { MODEL_KEY: secret, FLEET_KEY: '0123456789abcdef'.repeat(4) };
  const file = fleet.suite({
    prompt,
    cases: [{ id: 'a', prepare: 'echo hemidemisemiquaver', verify: 'cat done.txt' }],
    trials: 2,
    fleet: codec ? { codecKeyEnv: 'FLEET_KEY' } : {},
    config: {
      models: {
        small: { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:9/v1', apiKeyEnv: 'MODEL_KEY' },
      },
    },
  });
  const worker = await fleet.worker(codec ? 'sealed' : 'open', ['-c', '2'], { env });
  const running = fleet.command(['run', file, '--detach'], env);
  const { stdout, stderr, exitCode } = await running.ended;
  expect(exitCode, stderr).toBe(0);
  const handle = fleet.client.workflow.getHandle(stdout.trim());
  const execution = { workflowId: handle.workflowId };
  const status = async () => {
    const { workflowService } = fleet.client;
    const asked = { namespace: 'default', execution };
    return (await workflowService.describeWorkflowExecution(asked)).workflowExecutionInfo?.status;
  };
  await expect.poll(status, { timeout: 120_000 }).toBe(completed);
  const history = await handle.fetchHistory();
  worker.kill('SIGTERM');
  await worker.ended;
  return { payloads: payloadsIn(history), batch: stdout.trim() };
}

/** All payloads in a history, as texts. */
function payloadsIn(history: unknown): string[] {
  const found: string[] = [];
  const look = (value: unknown): void => {
    if (value instanceof Uint8Array) found.push(Buffer.from(value).toString());
    else if (value !== null && typeof value === 'object') Object.values(value).forEach(look);
    else if (typeof value === 'string') found.push(value);
  };
  look(history);
  return found;
}

test('Temporal gets references and summaries: small, without a prompt, a script or a key', async () => {
  await using fleet = await openFleetPlace();
  const { payloads, batch } = await historyOf(fleet, false);
  const all = payloads.join('\n');
  expect(all).toContain(batch);
  expect(all).toMatch(/"verdict":"passed"/);
  for (const word of [secret, 'quincunx', 'hemidemisemiquaver', 'done.txt']) expect(all).not.toContain(word);
  expect(Math.max(...payloads.map(({ length }) => length))).toBeLessThan(100_000);
});

test('with a key of the fleet, Temporal cannot read even those', async () => {
  await using fleet = await openFleetPlace();
  const { payloads } = await historyOf(fleet, true);
  expect(payloads.join('\n')).toContain('binary/offsite-aes-256-gcm');
  expect(payloads.join('\n')).not.toContain('"verdict"');
});

test('a batch whose workflow exists is not started again, and one without is', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({ cases: [{ id: 'a', verify: 'cat done.txt' }] });
  const batch = await fleet.started(file);
  const handle = fleet.client.workflow.getHandle(batch);
  const { runId } = await handle.describe();
  const again = fleet.client.workflow.start('offsiteBatch', {
    workflowId: batch,
    taskQueue: 'offsite',
    args: [],
    workflowIdReusePolicy: 'REJECT_DUPLICATE',
    workflowIdConflictPolicy: 'FAIL',
  });
  await expect(again).rejects.toThrow(/already started/i);
  const watching = fleet.command(['attach', batch]);
  await fleet.worker('one', ['-c', '1']);
  const { exitCode, stderr } = await watching.ended;
  expect(exitCode, stderr).toBe(0);
  expect((await handle.describe()).runId).toBe(runId);
});

test('without the packages of Temporal, a command says how to install them', async () => {
  await using fleet = await openFleetPlace();
  fleet.suite({ cases: [] });
  const hiding = fleet.place.write(
    'hide.mjs',
    `import { registerHooks } from 'node:module';
     registerHooks({
       resolve: (name, context, next) =>
         next(name.startsWith('@temporalio/') ? '@temporalio/not-installed' : name, context),
     });`,
  );
  const { exitCode, stderr } = await fleet.command(['status'], { NODE_OPTIONS: `--import=${hiding}` }).ended;
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/needs the packages of Temporal[\s\S]*npm install @temporalio\/client/);
});

test('without a storage, nothing starts', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({ cases: [{ id: 'a', verify: 'cat done.txt' }], fleet: { storage: undefined } });
  const { exitCode, stderr } = await fleet.run(file);
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/no storage for plans and records[\s\S]*Name one in offsite.yaml/);
  expect(await fleet.runs('a')).toEqual([]);
});
