import { planFormat } from '../agent/batch-run.ts';

/**
 * The version of what the machines of a fleet exchange: documents, orders, and the code of the workflows.
 * Increment it with each change that an older worker does not understand.
 */
const ownFormat = 5;

/**
 * Workers take tasks of their own format only: it is a part of the names of task queues. So a worker of
 * another version of Offsite never runs half of a batch that it cannot read.
 */
export const fleetFormat = `${ownFormat}.${planFormat}`;

/** The task queue of workflows, of lists of trials, and of looks for queued runs. */
export function workflowQueue(taskQueue: string): string {
  return `${taskQueue}/${fleetFormat}`;
}

/** The message about work of another format. */
export function otherFormat(format: string): string {
  const isNewer = format.localeCompare(fleetFormat, 'en', { numeric: true }) > 0;
  const which = isNewer ? 'a newer' : 'an older';
  return `it comes from ${which} Offsite (fleet format ${format}; here it is ${fleetFormat})`;
}
