import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { Readable as ReadableStream } from 'node:stream';

/** What came back on the socket until the service closed it. */
export interface RawAnswer {
  status: number | undefined;
  headers: string;
  body: string;
}

/**
 * Sends bytes over a connection of its own, and reads until the service closes it: nothing is added to them
 * and nothing is checked. `parts` are sent as the service takes them; the sending side stays open, so that it
 * is the service who ends the conversation. Fails after a minute.
 */
export async function sendRaw(port: number, parts: Iterable<string | Uint8Array>): Promise<RawAnswer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const signal = AbortSignal.timeout(60_000);
  const expire = () => socket.destroy(new Error('the service did not end the conversation in a minute'));
  signal.addEventListener('abort', expire, { once: true });
  // A service that has heard enough resets the connection while we still send; what it said before counts.
  const sending: Readable = ReadableStream.from(parts);
  sending.pipe(socket, { end: false });
  let received = '';
  try {
    for await (const chunk of socket.setEncoding('utf8')) received += chunk;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'ECONNRESET' && code !== 'EPIPE') throw error;
  } finally {
    signal.removeEventListener('abort', expire);
    sending.destroy();
    socket.destroy();
  }
  // An interim `100 Continue` is not the answer.
  const final = received.replace(/^HTTP\/1\.1 1\d\d .*?\r\n\r\n/s, '');
  const [headers = '', ...body] = final.split('\r\n\r\n');
  const status = headers.match(/^HTTP\/1\.1 (\d{3})/)?.[1];
  return { status: status === undefined ? undefined : Number(status), headers, body: body.join('\r\n\r\n') };
}
