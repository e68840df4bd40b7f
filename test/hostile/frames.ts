/** Frames of HTTP/2 as bytes, for what a client library would not send. */

const types = { data: 0, headers: 1, reset: 3, settings: 4, goaway: 7 } as const;

export const preface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame('settings', 0, 0),
]);

export function frame(
  type: keyof typeof types,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(types[type], 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const endHeaders = 4;
/** `:method CONNECT` and `:authority gateway`, neither compressed. */
const connectHeaders = Buffer.concat([Buffer.from('\x02\x07CONNECT'), Buffer.from('\x01\x07gateway')]);

/** A connection of the sandbox's that opens. */
export function opening(stream: number): Buffer {
  return frame('headers', endHeaders, stream, connectHeaders);
}

/** A connection that is reset with an error code of HTTP/2. */
export function reset(stream: number, code = 8): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  return frame('reset', 0, stream, payload);
}
