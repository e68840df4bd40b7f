import { hashOf } from './storage/contents.ts';

/** A trial, by the service's ids. */
export interface FoundTrial {
  batch: string;
  run: string;
  ordinal: number;
}

/**
 * The id of the workflow of a trial that the poll found: as long as Temporal knows the id, it starts the
 * trial again only if the workflow failed. Ids of a service may hold anything, so unusual ones are hashed.
 */
export function foundTrialId(taskQueue: string, { batch, run, ordinal }: FoundTrial): string {
  return [taskQueue, 'found', ...[batch, run].map(named), ordinal].join('/');
}

function named(id: string): string {
  return /^[\w.-]{1,100}$/.test(id) ? id : `sha256:${hashOf(id)}`;
}
