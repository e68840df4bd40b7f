/** What this process used while something ran. Megabytes are 10^6 bytes of resident memory. */
export interface ProcessChange {
  cpuMs: number;
  /** The most memory, above what it was before. */
  most: number;
  /** The most of the second half, above the most of the first: about 0 if it is flat. */
  growth: number;
}

const lookMs = 10;

export async function watchProcess(run: () => Promise<unknown>): Promise<ProcessChange> {
  const before = process.memoryUsage.rss();
  const cpuBefore = process.cpuUsage();
  const seen: number[] = [];
  const looking = setInterval(() => seen.push(process.memoryUsage.rss()), lookMs);
  try {
    await run();
  } finally {
    clearInterval(looking);
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const middle = Math.ceil(seen.length / 2);
  const most = (some: readonly number[]) => Math.max(before, ...some);
  const megabytes = (bytes: number) => Math.round(bytes / 1e6);
  return {
    cpuMs: (user + system) / 1000,
    most: megabytes(most(seen) - before),
    growth: megabytes(most(seen.slice(middle)) - most(seen.slice(0, middle))),
  };
}
