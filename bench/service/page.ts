import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { memoryOf } from '../memory/measured-run.ts';
import { fillHistory, historyCase } from './history.ts';
import { measure, percentile } from './load.ts';
import { startServer } from './server-process.ts';

export interface PageSpeed {
  bytes: number;
  client: Reading;
  /** The same bytes, read and dropped. */
  floor: Reading;
  /** The most memory of the service's process, in MiB. */
  servicePeakMiB: number;
  /** How long the service took to answer somebody else while it sent the page. */
  others: { p50Ms: number; p99Ms: number; longestMs: number };
}

interface Reading {
  mbPerSecond: number;
  peakMiB: number;
}

const program = fileURLToPath(new URL('page-client.ts', import.meta.url));

/** Reads a page of a case with a long history from the service: 20 runs of 10 trials each. */
export async function measurePage(folder: string, key: string, trialBytes: number): Promise<PageSpeed> {
  fillHistory(folder, key, trialBytes);
  await using service = await startServer('./service-server.ts', folder, key);
  const read = async (how: 'client' | 'floor') => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      program,
      service.url,
      key,
      historyCase,
      how,
    ]);
    return JSON.parse(stdout) as { ms: number; count: number; peakMiB: number };
  };
  const floor = await read('floor');
  const reading = Promise.withResolvers<void>();
  const others = asking(service.url, key, reading.promise);
  const client = await read('client').finally(reading.resolve);
  const latencies = await others;
  const bytes = floor.count;
  const speed = ({ ms, peakMiB }: { ms: number; peakMiB: number }) => ({
    mbPerSecond: bytes / 1e6 / (ms / 1000),
    peakMiB,
  });
  return {
    bytes,
    client: speed(client),
    floor: speed(floor),
    servicePeakMiB: memoryOf(service.pid)?.highest ?? Number.NaN,
    others: {
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
      longestMs: Math.max(...latencies),
    },
  };
}

/** Asks the service a small question again and again until `end`. */
async function asking(url: string, key: string, end: Promise<void>): Promise<number[]> {
  let isOver = false;
  void end.then(() => {
    isOver = true;
  });
  const latencies: number[] = [];
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
  while (!isOver) {
    const once = { url, path: '/v1/auth.whoami', headers, body: () => '{}', connections: 1, forMs: 20 };
    latencies.push(...(await measure(once)).latenciesMs);
  }
  return latencies;
}
