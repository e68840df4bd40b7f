/** What a worker's bundle of workflows contains. */
export { offsiteBatch } from './batch.ts';
export { offsiteModelLimit } from './model-limit.ts';
export { offsiteSlice } from './slice.ts';
