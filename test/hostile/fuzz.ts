/** Numbers from a seed, so that what a run met can be met again (mulberry32). */
export function seeded(seed: number) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (most: number) => Math.floor(next() * most);
  return {
    below,
    pick: <Value>(values: readonly Value[]): Value => values[below(values.length)] as Value,
    bytes: (length: number) => Buffer.from(Array.from({ length }, () => below(256))),
  };
}

export type Seeded = ReturnType<typeof seeded>;

/** Requests that are well formed until something is done to them. */
const requests = (token: string) => [
  `POST /v1/chat/completions HTTP/1.1\r\nhost: model\r\nauthorization: Bearer ${token}\r\ncontent-length: 60\r\n\r\n{"model":"scripted","messages":[{"role":"user","content":""}]`,
  `POST /v1/messages HTTP/1.1\r\nhost: model\r\nx-api-key: ${token}\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"mod\r\n0\r\n\r\n`,
  'GET /v1/models HTTP/1.1\r\nhost: model\r\nexpect: 100-continue\r\n\r\n',
  'CONNECT 127.0.0.1:1 HTTP/1.1\r\nhost: 127.0.0.1:1\r\n\r\nhello',
  'GET http://127.0.0.1:1/ HTTP/1.1\r\nhost: 127.0.0.1:1\r\n\r\n',
  'GET /v1/models HTTP/1.1\r\nhost: model\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'POST /v1/evals.start HTTP/1.1\r\nhost: service\r\nauthorization: Bearer x\r\ncontent-length: 10\r\n\r\n{"a":1',
  'GET /status HTTP/1.1\r\nhost: daemon\r\n\r\n',
  'GET /metrics HTTP/1.1\r\n\r\n',
];

/**
 * The input of a hostile client on one connection: a request cut at any byte, with random bytes replaced, or
 * only garbage.
 */
export function hostileBytes(random: Seeded, token = 'none'): Buffer {
  const whole = Buffer.from(random.pick(requests(token)));
  const cut = Buffer.from(whole.subarray(0, random.below(whole.length + 1)));
  switch (random.below(4)) {
    case 0:
      return cut;
    case 1:
      return random.bytes(random.below(200));
    case 2:
      return Buffer.concat([cut, random.bytes(random.below(50))]);
    default: {
      if (cut.length > 0) cut[random.below(cut.length)] = random.below(256);
      return cut;
    }
  }
}
