/** Epoch milliseconds as an ISO 8601 date-time, as run records carry times. */
export function isoTime(epochMillis: number): string {
  return new Date(epochMillis).toISOString();
}
