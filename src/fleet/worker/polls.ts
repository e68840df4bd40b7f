import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { type FleetConnection, withoutUndefined } from '../connect.ts';
import type { FleetActivities } from '../workflow/messages.ts';
import { workflowBundle } from '../workflow-bundle.ts';
import { Slots } from './slots.ts';

export interface PollParts {
  connection: FleetConnection;
  /** The queue of workflows and of the lists of their trials. */
  taskQueue: string;
  /** The queues of trials. */
  queues: readonly string[];
  activities: FleetActivities;
  /** Trials that this worker holds at a time. */
  most: number;
  name: string;
}

/** Polls of task queues. */
export interface Polls {
  /** Lets no poll for a trial begin, until it is called with false. */
  hold(isHeld: boolean): void;
  /** Takes no more tasks. */
  end(): void;
  /** Resolves when all tasks have ended, after {@link end}. Rejects if the server refuses a poll for good. */
  ended: Promise<void>;
}

/** Work on a trial may go on for as long as the trial does. */
const graceTime = '7 days';

/** Begins to poll. Rejects if the server cannot be reached. */
export async function openPolls(parts: PollParts): Promise<Polls> {
  // The command decides what a signal means. The worker's own log has what people need.
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' }, forward: {} } },
  });
  const { connection, taskQueue, queues, activities, most, name } = parts;
  const native = await NativeConnection.connect(withoutUndefined(connection.options));
  const shared = {
    connection: native,
    namespace: connection.fleet.namespace,
    dataConverter: connection.dataConverter,
    identity: name,
    shutdownGraceTime: graceTime,
  } as const;
  const { offsiteTrial, offsiteTrialPage } = activities;
  const workers: Worker[] = [
    await Worker.create({
      ...shared,
      taskQueue,
      workflowBundle: { codePath: await workflowBundle() },
      activities: { offsiteTrialPage },
    }),
  ];
  const slots = new Slots(most);
  const fixed = { type: 'fixed-size', numSlots: 1 } as const;
  for (const queue of queues) {
    const worker = await Worker.create({
      ...shared,
      taskQueue: queue,
      activities: { offsiteTrial },
      tuner: {
        activityTaskSlotSupplier: slots.ofQueue(),
        workflowTaskSlotSupplier: fixed,
        localActivityTaskSlotSupplier: fixed,
        nexusTaskSlotSupplier: fixed,
      },
    });
    workers.push(worker);
  }
  const end = () => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  const ended = Promise.all(
    workers.map((worker) =>
      worker.run().catch((error: unknown) => {
        end();
        throw error;
      }),
    ),
  ).then(() => native.close());
  const hold = (isHeld: boolean) => {
    slots.isHeld = isHeld;
  };
  return { hold, end, ended };
}
