/** Enough for gigabytes on a slow disk; the caller's signal may end a transfer sooner. */
export const TRANSFER_TIMEOUT_MS = 15 * 60_000;
