import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { WithStartWorkflowOperation, type WorkflowHandle } from '@temporalio/client';
import { expect, test } from 'vitest';
import { workflowQueue } from '../../src/fleet/format.ts';
import { queueFor } from '../../src/fleet/placement.ts';
import { hashOf } from '../../src/fleet/storage/storage.ts';
import {
  batchWorkflow,
  foundTrialWorkflow,
  limitWorkflow,
  pollWorkflow,
  updates,
} from '../../src/fleet/workflow/messages.ts';
import { type FleetPlace, openFleetPlace } from './fleet-place.ts';

// biome-ignore lint/suspicious/noExplicitAny: a document that somebody forges has no type
type Forged = any;

/** What the workflow of a batch was started with. */
async function inputOf(fleet: FleetPlace, batch: string): Promise<Forged> {
  const { events } = await fleet.client.workflow.getHandle(batch).fetchHistory();
  const started = events?.[0]?.workflowExecutionStartedEventAttributes;
  return JSON.parse(Buffer.from(started?.input?.payloads?.[0]?.data ?? []).toString());
}

function pathOf(fleet: FleetPlace, sha256: string): string {
  return join(fleet.place.folder, 'storage', 'contents', sha256.slice(0, 2), sha256);
}

/** Puts a document into the storage. Returns its hash. */
function put(fleet: FleetPlace, document: Forged): string {
  const content = JSON.stringify(document);
  const sha256 = hashOf(content);
  mkdirSync(dirname(pathOf(fleet, sha256)), { recursive: true });
  writeFileSync(pathOf(fleet, sha256), content);
  return sha256;
}

const forgeries: [name: string, change: (document: Forged) => void, reason: RegExp][] = [
  [
    'an image that is built from a folder of the worker',
    ({ plan }) => {
      plan.plan.cases[0].local.environment.build = {
        name: 'Dockerfile',
        file: '/root/Dockerfile',
        dockerfile: 'FROM scratch\nCOPY . /',
        args: {},
        context: { folder: '/root', ignore: '', hash: 'x' },
        images: {},
        place: 'here',
      };
    },
    /has a part that is none/,
  ],
  [
    'a service that is built from one',
    ({ plan }) => {
      const build = { name: 'Dockerfile', dockerfile: 'FROM scratch', context: { folder: '/etc' } };
      plan.plan.cases[0].local.environment.services = [{ name: 'db', build }];
    },
    /has a part that is none/,
  ],
  [
    'a repository of the worker',
    ({ plan }) => {
      const source = { url: 'x', commit: 'HEAD', history: 'none', repository: '/root/private.git' };
      plan.plan.cases[0].local.environment.source = source;
    },
    /a repository that only one machine has/,
  ],
  [
    'a variable of the worker',
    ({ plan }) => {
      plan.plan.variants[0].sandbox.passEnv = ['SECRET_OF_THE_WORKER'];
    },
    /asks for the variable SECRET_OF_THE_WORKER/,
  ],
  ['another batch', (document) => Object.assign(document, { batch: 'another' }), /has no trial/],
  [
    'another service',
    (document) => Object.assign(document, { service: 'http://x' }),
    /belongs to the service/,
  ],
  [
    'a plan that is none',
    ({ plan }) => Object.assign(plan, { plan: { cases: [null], variants: 5 } }),
    /is none/,
  ],
  ['runs that are none', (document) => Object.assign(document, { runs: [{ id: 5 }] }), /cannot be read/],
];

test('a forged batch gets nothing of a worker, and does not end it', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({ cases: [{ id: 'a', verify: 'cat done.txt' }] });
  const env = { SECRET_OF_THE_WORKER: 'a-secret-of-the-worker' };
  await fleet.worker('one', ['-c', '1'], { env });
  const batch = await fleet.started(file);
  const input = await inputOf(fleet, batch);
  const { memo } = await fleet.client.workflow.getHandle(batch).describe();
  await fleet.client.workflow.getHandle(batch).result();
  const text = readFileSync(pathOf(fleet, input.document), 'utf8');

  const forged = forgeries.map(async ([name, change, reason], index) => {
    const document = JSON.parse(text);
    change(document);
    const sha256 = put(fleet, document);
    const handle = await fleet.client.workflow.start(batchWorkflow, {
      workflowId: `forged-${index}`,
      taskQueue: workflowQueue('offsite'),
      memo,
      args: [{ ...input, document: sha256 }],
    });
    // Where the list of trials cannot be read, the workflow waits for a worker that can.
    const said = async () => {
      const { status, raw } = await handle.describe();
      const pending = raw.pendingActivities?.map(({ lastFailure }) => lastFailure?.message ?? '') ?? [];
      if (status.name === 'RUNNING') return pending.join();
      return JSON.stringify(await handle.result().catch(String));
    };
    await expect.poll(said, { timeout: 120_000, interval: 500, message: name }).toMatch(reason);
    if ((await handle.describe()).status.name === 'RUNNING') await handle.terminate();
  });
  await Promise.all(forged);

  const after = await fleet.run(fleet.suite({ cases: [{ id: 'b', verify: 'cat done.txt' }] }));
  expect(after.exitCode, after.stderr).toBe(0);
});

test('a forged run that others seem to have queued is refused, and so is a forged poll', async () => {
  await using fleet = await openFleetPlace();
  const file = fleet.suite({ cases: [{ id: 'a', verify: 'cat done.txt' }] });
  await fleet.worker('one', ['-c', '1']);
  const batch = await fleet.started(file);
  const input = await inputOf(fleet, batch);
  const handle = fleet.client.workflow.getHandle(batch);
  const { memo = {} } = await handle.describe();
  await handle.result();
  const { version, service } = JSON.parse(readFileSync(pathOf(fleet, input.document), 'utf8'));
  const run = { id: 'r', batchId: 'x', caseId: 'a', suite: '', caseName: 'a', variant: 'v', details: {} };
  const right = { version, kind: 'found', batch: 'x', service, run };
  const forged: [document: Forged, reason: RegExp][] = [
    [{ ...right, run: { ...run, id: 'another' } }, /has no trial/],
    [{ ...right, run: { ...run, batchId: 'another' } }, /has no trial/],
    [{ ...right, run: { ...run, details: { variant: 5 } } }, /cannot be read: run\.details\.variant/],
    [{ ...right, run: null }, /cannot be read: run/],
    [{ ...right, service: 'http://x' }, /belongs to the service/],
    [{ ...right, planned: '../../x' }, /cannot be read: planned/],
    [{ ...right, planned: input.document }, /names the plan of batch/],
    [{ ...right, planned: put(fleet, right) }, /which somebody else queued/],
    [{ ...right, version: '1.1' }, /an older Offsite/],
    [null, /cannot be read/],
  ];
  const queue = queueFor('offsite', 'default', (memo.needs as Forged)[0]);
  const start = (workflow: string, workflowId: string, ...args: unknown[]) =>
    fleet.client.workflow.start(workflow, {
      workflowId,
      taskQueue: workflowQueue('offsite'),
      memo,
      args,
    });
  const failureOf = async (one: WorkflowHandle) => {
    const { status, raw } = await one.describe();
    const pending = raw.pendingActivities?.map(({ lastFailure }) => lastFailure?.message ?? '') ?? [];
    if (status.name === 'RUNNING') return pending.join();
    return one.result().then(JSON.stringify, (error) => String(error.cause?.cause ?? error.cause));
  };
  const asked = forged.map(async ([document, reason], index) => {
    const order = { batch: 'x', document: put(fleet, document), run: 'r', ordinal: 0 };
    const settings = { queue, heartbeatMs: 60_000, priority: 3 };
    const one = await start(foundTrialWorkflow, `found-${index}`, order, settings);
    await expect.poll(() => failureOf(one), { timeout: 120_000, message: `${reason}` }).toMatch(reason);
    if ((await one.describe()).status.name === 'RUNNING') await one.terminate();
  });
  await Promise.all(asked);

  const trials = { taskQueue: 'offsite', pool: 'default', window: 100, heartbeatMs: 60_000, priority: 3 };
  const targets = { service, suites: ['small'], cases: [], every: { min: 200, max: 2_000 }, since: 0 };
  const polls = [
    { ...trials, heartbeatMs: 500 },
    { ...trials, pool: 5 },
    { ...trials, window: 1e9 },
  ];
  for (const [index, wrong] of polls.entries()) {
    const one = await start(pollWorkflow, `poll-${index}`, { ...targets, trials: wrong });
    await expect.poll(() => failureOf(one), { timeout: 60_000 }).toMatch(/Invalid input|Too (small|big)/);
    await one.terminate();
  }
  const after = await fleet.run(fleet.suite({ cases: [{ id: 'b', verify: 'cat done.txt' }] }));
  expect(after.exitCode, after.stderr).toBe(0);
});

test('a rubbish renewal of permits is refused, and stops nobody else', async () => {
  await using fleet = await openFleetPlace();
  fleet.suite({ cases: [{ id: 'a' }] });
  await fleet.worker('one', ['-c', '1']);
  const renew = (renewal: unknown) =>
    fleet.client.workflow.executeUpdateWithStart(updates.renew, {
      args: [renewal],
      startWorkflowOperation: new WithStartWorkflowOperation(limitWorkflow, {
        workflowId: 'offsite/model/one',
        taskQueue: workflowQueue('offsite'),
        args: [{ termMs: 20_000 }],
        workflowIdConflictPolicy: 'USE_EXISTING',
      }),
    });
  const right = { holder: 'one', sequence: 1, keep: 0, wants: 2, limit: 3 };
  expect(await renew(right)).toBe(2);
  for (const wrong of [
    null,
    'x',
    {},
    { ...right, wants: 1e9, holder: 'other' },
    { ...right, limit: Number.NaN },
  ]) {
    await expect(renew(wrong)).rejects.toThrow();
  }
  expect(await renew({ ...right, sequence: 2, wants: 3 })).toBe(3);
});
