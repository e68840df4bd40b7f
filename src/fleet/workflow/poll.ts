import {
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  isCancellation,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { Starting } from '../worker/orders.ts';
import { type FleetActivities, type PollInput, pollQuery, pollSignals } from './messages.ts';

/** Events after which the workflow continues as new: batches that start add some. */
const longHistory = 4_000;

/**
 * Polls the service for queued local runs, in one activity that ends with the poll. When the worker that runs
 * it ends, Temporal gives it to another one. The workflow keeps which batches are being started, for the
 * activity to ask. The service knows the rest, and the ids of the trials' workflows say what was started.
 */
export async function offsitePoll(input: PollInput): Promise<void> {
  const scope = new CancellationScope();
  const { starting: before = [], ...order } = input;
  let [starting, started] = [before, order.started];
  let isStopped = false;
  setHandler(defineSignal(pollSignals.stop), () => {
    isStopped = true;
    scope.cancel();
  });
  setHandler(defineSignal<[Starting]>(pollSignals.starting), (start) => {
    starting = [...starting.filter(({ until }) => until > Date.now()), start];
  });
  setHandler(defineSignal<[string]>(pollSignals.started), (token) => {
    starting = starting.filter((start) => start.token !== token);
  });
  setHandler(defineQuery<Starting[]>(pollQuery), () => starting);
  const { offsitePollRuns } = proxyActivities<FleetActivities>({
    heartbeatTimeout: input.trials.heartbeatMs,
    // Another worker continues it then.
    startToCloseTimeout: '7 days',
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    retry: { initialInterval: '1 second', maximumInterval: '10 seconds' },
  });
  const endIfLong = async () => {
    await condition(() => workflowInfo().historyLength > longHistory);
    scope.cancel();
  };
  endIfLong().catch(() => undefined);
  try {
    started = await scope.run(() => offsitePollRuns({ ...order, started }));
  } catch (error) {
    if (!isCancellation(error)) throw error;
  }
  if (isStopped || CancellationScope.current().consideredCancelled) return;
  await continueAsNew<typeof offsitePoll>({ ...order, starting, started });
}
