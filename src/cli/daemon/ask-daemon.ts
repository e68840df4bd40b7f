import { once } from 'node:events';
import { statSync } from 'node:fs';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { controlSocketOf, type SocketOwner } from '../../agent/daemon/control-socket-path.ts';
import type { DaemonStatus } from '../../agent/daemon/status.ts';
import { infrastructureError, inputError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';

const noneOf = { daemon: 'no daemon', 'fleet-worker': 'no worker of a fleet' };
/** What starts each owner of a socket. */
const commandOf = { daemon: 'offsite daemon', 'fleet-worker': 'offsite fleet worker' };

/**
 * Asks the daemon, or the fleet worker, of a data folder over its socket. Resolves with the answer.
 * Throws `DAEMON_NOT_RUNNING`, `DAEMON_REFUSED` with the daemon's message, and `DAEMON_SILENT`.
 */
export async function askDaemon(
  dataFolder: string,
  method: 'GET' | 'POST',
  path: string,
  owner: SocketOwner = 'daemon',
): Promise<unknown> {
  const { status, body } = await answerAt(controlSocketOf(dataFolder, owner), owner, method, path);
  const answer = parseForeignJson(body);
  if (status === 200) return answer;
  const { message } = answer as { message?: unknown };
  throw inputError('DAEMON_REFUSED', String(message ?? `the daemon answered ${status}`));
}

/** The mode of a data folder's daemon; `working` if it does not say. */
export async function daemonMode(dataFolder: string): Promise<DaemonStatus['mode']> {
  const asked = askDaemon(dataFolder, 'GET', '/status') as Promise<Pick<DaemonStatus, 'mode'>>;
  const { mode } = await asked.catch(() => ({ mode: 'working' as const }));
  return mode;
}

/** Whether a data folder's daemon listens: a killed one leaves its socket. */
export async function daemonListens(dataFolder: string): Promise<boolean> {
  const socket = connect(controlSocketOf(dataFolder));
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    return !isNotThere(error);
  } finally {
    socket.destroy();
  }
}

async function answerAt(socketPath: string, owner: SocketOwner, method: string, path: string) {
  try {
    // Faster than asking. `existsSync` would call a socket missing that this user may not look at.
    statSync(socketPath);
    return await exchange(socketPath, method, path);
  } catch (error) {
    throw notAnswered(socketPath, owner, error);
  }
}

/** A killed daemon leaves a socket that refuses connections. */
function isNotThere(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException;
  return ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ECONNREFUSED'].includes(code);
}

function notAnswered(socketPath: string, owner: SocketOwner, error: unknown): OffsiteError {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (isNotThere(error)) {
    return inputError(
      'DAEMON_NOT_RUNNING',
      `${noneOf[owner]} runs in this data folder: nothing listens on ${socketPath}`,
      {
        hint: `Start it with \`${commandOf[owner]}\`, or name its data folder: --data-folder or OFFSITE_HOME.`,
        cause: error,
      },
    );
  }
  if (code === 'EACCES' || code === 'EPERM') {
    return inputError(
      'DAEMON_OF_ANOTHER_USER',
      `this user may not ask the daemon of this data folder: ${messageOf(error)}`,
      {
        hint: 'Ask as the user whose data folder it is, or name another: --data-folder or OFFSITE_HOME.',
        cause: error,
      },
    );
  }
  return infrastructureError(
    'DAEMON_SILENT',
    `the daemon behind ${socketPath} does not answer: ${messageOf(error)}`,
    { hint: 'Only its user may ask it. If it is stuck, kill it: no finished result is lost.', cause: error },
  );
}

/** Milliseconds within which a daemon answers unless it is stuck. */
const deadlineMs = 60_000;

/** One request over a Unix socket, and the text of its answer. */
async function exchange(
  socketPath: string,
  method: string,
  path: string,
): Promise<{ status: number; body: string }> {
  // Node's HTTP takes longer to load than all else.
  const { request } = await import('node:http');
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  const asking = request({ socketPath, method, path, signal: AbortSignal.timeout(deadlineMs), agent: false });
  asking.on('error', reject);
  asking.on('response', (response) => {
    text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
  });
  asking.end();
  return promise;
}
