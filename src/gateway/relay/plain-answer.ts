import { STATUS_CODES } from 'node:http';

/**
 * The bytes of an HTTP/1.1 answer that is the last on its connection, for a connection that no server writes
 * to any more. `said` is a line of text.
 */
export function plainAnswer(status: number, said: string): string {
  const body = `${said}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'content-type: text/plain; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}
