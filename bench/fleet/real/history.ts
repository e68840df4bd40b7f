import type { Client } from '@temporalio/client';
import type { TrialSummary } from '../../../src/fleet/workflow/messages.ts';

/** What the history of a batch's workflow tells about its trials. Times are in seconds. */
export interface BatchHistory {
  /** Epoch. */
  startedAt: number;
  events: number;
  bytes: number;
  /** For each trial, how long a worker was busy with it. */
  services: number[];
  /** For each workflow task, how long the worker needed. */
  tasks: number[];
  /** The largest payload, in bytes. */
  largestPayload: number;
}

/** Reads the history of a batch that one workflow has run. */
export async function readHistory(client: Client, batch: string): Promise<BatchHistory> {
  const handle = client.workflow.getHandle(batch);
  const { events } = await handle.fetchHistory();
  const { historySize = 0 } = await handle.describe();
  const read: BatchHistory = {
    startedAt: 0,
    events: events?.length ?? 0,
    bytes: historySize,
    services: [],
    tasks: [],
    largestPayload: 0,
  };
  let taskAt = 0;
  for (const event of events ?? []) {
    const at = secondsOf(event.eventTime);
    if (event.workflowExecutionStartedEventAttributes) read.startedAt = at;
    if (event.workflowTaskStartedEventAttributes) taskAt = at;
    if (event.workflowTaskCompletedEventAttributes) read.tasks.push(at - taskAt);
    const payloads = [
      ...(event.activityTaskScheduledEventAttributes?.input?.payloads ?? []),
      ...(event.activityTaskCompletedEventAttributes?.result?.payloads ?? []),
    ];
    for (const { data } of payloads) read.largestPayload = Math.max(read.largestPayload, data?.length ?? 0);
    const result = event.activityTaskCompletedEventAttributes?.result?.payloads?.[0]?.data;
    if (!result) continue;
    const { ms } = JSON.parse(Buffer.from(result).toString()) as Partial<TrialSummary>;
    if (ms !== undefined) read.services.push(ms / 1000);
  }
  return read;
}

/** @param time a timestamp of protobuf, whose seconds may be a long integer */
function secondsOf(time: { seconds?: unknown; nanos?: number | null } | null | undefined): number {
  return Number(time?.seconds ?? 0) + (time?.nanos ?? 0) / 1e9;
}
