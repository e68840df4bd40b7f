import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import {
  type BatchInput,
  type BatchOutcome,
  batchWorkflow,
  type FleetActivities,
  type TrialSummary,
} from '../../src/fleet/workflow/messages.ts';
import { workflowBundle } from '../../src/fleet/workflow-bundle.ts';
import { openTemporal } from './temporal-server.ts';

/** The workflows on a real server, with activities that only count. */
export interface WorkflowPlace extends AsyncDisposable {
  client: Client;
  /** What the activities of the newest batch did. */
  counts: { now: number; most: number; ran: string[] };
  /** What trials return, and how long they take. */
  trial: { summary: TrialSummary; ms: (position: number) => number };
  start(batch: string, more: Partial<BatchInput>): Promise<WorkflowHandle>;
  run(batch: string, more: Partial<BatchInput>): Promise<BatchOutcome>;
}

export async function openWorkflows(): Promise<WorkflowPlace> {
  const opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'offsite-fleet-'));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const server = opened.use(await openTemporal(folder));
  const connection = await Connection.connect({ address: server.address });
  opened.defer(() => connection.close());
  const client = new Client({ connection });
  const native = await NativeConnection.connect({ address: server.address });
  opened.defer(() => native.close());
  const counts: WorkflowPlace['counts'] = { now: 0, most: 0, ran: [] };
  const trial: WorkflowPlace['trial'] = {
    summary: { verdict: 'passed', ms: 50, worker: 'test' },
    ms: () => 50,
  };
  const activities: FleetActivities = {
    async offsiteTrial({ run, ordinal }) {
      counts.ran.push(`${run}/${ordinal}`);
      counts.most = Math.max(counts.most, ++counts.now);
      await sleep(trial.ms(ordinal));
      counts.now--;
      return trial.summary;
    },
    offsiteLook: () => Promise.reject(new Error('nothing polls')),
    offsiteTrialPage: async ({ list: { first, count }, taskQueue: queue }) =>
      Array.from({ length: count }, (_, index) => ({ run: 'run', ordinal: first + index, queue })),
  };
  const worker = await Worker.create({
    connection: native,
    taskQueue: 'offsite',
    workflowBundle: { codePath: await workflowBundle() },
    activities,
  });
  const running = worker.run();
  opened.defer(async () => {
    worker.shutdown();
    await running;
  });
  const place: WorkflowPlace = {
    client,
    counts,
    trial,
    start(batch, more) {
      Object.assign(counts, { now: 0, most: 0, ran: [] });
      const input: BatchInput = {
        batch,
        document: '',
        trials: 25,
        taskQueue: 'offsite',
        pool: 'default',
        heartbeatMs: 60_000,
        window: 4,
        slice: 1_000,
        lane: 1_000,
        priority: 3,
        budget: {},
        trialBudget: {},
        ...more,
      };
      return client.workflow.start(batchWorkflow, { workflowId: batch, taskQueue: 'offsite', args: [input] });
    },
    run: async (batch, more) => (await (await place.start(batch, more)).result()) as BatchOutcome,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  return place;
}
