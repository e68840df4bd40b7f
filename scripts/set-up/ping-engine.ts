import { request } from 'node:http';

/** Where an engine may listen. */
export type EngineAddress = { socketPath: string } | { host: string; port: number };

/** What came of asking `/_ping`. */
export type Ping =
  | { state: 'alive'; apiVersion: string | undefined }
  /** Nothing is there, or nobody listens any more. */
  | { state: 'absent'; reason: string }
  /** A socket that this user may not open. */
  | { state: 'forbidden' }
  /** Somebody listens and does not answer as an engine does. */
  | { state: 'unwell'; reason: string };

/** Asks once whether a Docker-compatible engine answers at this address. Throws only the signal's reason. */
export function pingEngine(address: EngineAddress, deadlineMs: number, signal?: AbortSignal): Promise<Ping> {
  signal?.throwIfAborted();
  const late = AbortSignal.timeout(deadlineMs);
  const given = signal === undefined ? late : AbortSignal.any([late, signal]);
  return new Promise((resolve, reject) => {
    const asked = request({ ...address, path: '/_ping', signal: given });
    asked.on('response', (answer) => {
      answer.resume();
      const apiVersion = answer.headers['api-version'];
      if (answer.statusCode === 200) resolve({ state: 'alive', apiVersion: apiVersion?.toString() });
      else resolve({ state: 'unwell', reason: `it answered ${answer.statusCode}` });
    });
    asked.on('error', (error: NodeJS.ErrnoException) => {
      if (signal?.aborted) reject(signal.reason);
      else if (late.aborted)
        resolve({ state: 'unwell', reason: `it did not answer within ${deadlineMs / 1000} s` });
      else resolve(readFailure(error));
    });
    asked.end();
  });
}

function readFailure(error: NodeJS.ErrnoException): Ping {
  switch (error.code) {
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ECONNREFUSED':
    case 'ENOTFOUND':
    case 'EHOSTUNREACH':
      return { state: 'absent', reason: error.message };
    case 'EACCES':
    case 'EPERM':
      return { state: 'forbidden' };
    default:
      return { state: 'unwell', reason: error.message };
  }
}
