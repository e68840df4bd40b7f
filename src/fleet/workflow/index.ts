/** What a worker's bundle of workflows contains. */
export { offsiteBatch } from './batch.ts';
export { offsiteFoundTrial } from './found-trial.ts';
export { offsiteModelLimit } from './model-limit.ts';
export { offsitePoll } from './poll.ts';
export { offsiteSlice } from './slice.ts';
