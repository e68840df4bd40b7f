import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type ClientRequest, request as httpRequest } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { type Answer, answerOf, responseOf } from '../gateway/sandbox.ts';

export interface RelayProcess extends AsyncDisposable {
  child: ChildProcess;
  port: number;
  /** What it has printed to stderr. */
  said(): string;
  /** A trial's sandbox, as its sidecar carries its connections; without `way`, over the engine. */
  trial(way?: Way): Promise<HostileTrial>;
  /** Resolves with the bytes that it occupies now, garbage and room for more among them. */
  resident(): Promise<number>;
  /** Collects its garbage, and resolves with what it still holds. */
  held(): Promise<Held>;
}

/** What a process holds when its garbage has been collected. */
export interface Held {
  /** Bytes of objects in use, and of the buffers and native memory that belong to them. */
  alive: number;
  /** Bytes that the process occupies: also native memory that belongs to no object, and free room. */
  resident: number;
  /** Sockets, servers and whatever else keeps a process running. */
  handles: number;
}

/** How a sidecar carries the connections of its sandbox: see sidecar/main.cjs. */
export const ways = ['over the engine', 'over a shared socket'] as const;
export type Way = (typeof ways)[number];

export interface HostileTrial extends Disposable {
  token: string;
  /** The path of the shared socket. */
  shared: string;
  http2: ClientHttp2Session;
  socket: Socket;
  connection(): Duplex;
  /** Asks a model, and resolves with the whole answer. */
  ask(model: string, content?: string): Promise<Answer>;
  /** Sends a request; what comes of it is the caller's business. */
  send(body: string): ClientRequest;
}

const program = fileURLToPath(new URL('./relay-program.ts', import.meta.url));

/** The agent's side of relays in a separate process, so that a crash shows as the end of a process. */
export async function relayProcess({
  heapMiB,
  upstream = '',
}: {
  heapMiB?: number;
  upstream?: string;
} = {}): Promise<RelayProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-hostile-'));
  const script = join(folder, 'script.yaml');
  writeFileSync(script, stringify({ turns: [{ text: 'well served' }], otherwise: 'well served' }));
  const child = fork(program, [script, upstream], {
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    execArgv: ['--expose-gc', ...(heapMiB === undefined ? [] : [`--max-old-space-size=${heapMiB}`])],
  });
  let said = '';
  child.stderr?.on('data', (bytes: Buffer) => {
    said = `${said}${bytes}`.slice(-100_000);
  });
  const gone = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`the process ended with ${code ?? signal}: ${said}`);
  });
  gone.catch(() => undefined);
  const [{ port }] = (await Promise.race([once(child, 'message'), gone])) as [{ port: number }];
  const ask = async (what: 'resident' | 'held') => {
    const answered = once(child, 'message');
    child.send(what);
    const [answer] = await Promise.race([answered, gone]);
    return answer;
  };
  return {
    child,
    port,
    said: () => said,
    trial: (way = 'over the engine') => Promise.race([openTrial(port, way), gone]),
    resident: () => ask('resident'),
    held: () => ask('held'),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function openTrial(port: number, way: Way): Promise<HostileTrial> {
  const socket = connectSocket({ host: '127.0.0.1', port, noDelay: true });
  socket.on('error', () => undefined);
  let first = Buffer.alloc(0);
  while (!first.includes('\n')) {
    await once(socket, 'readable', { signal: AbortSignal.timeout(20_000) });
    first = Buffer.concat([first, socket.read() ?? Buffer.alloc(0)]);
  }
  const end = first.indexOf('\n');
  if (end + 1 < first.length) socket.unshift(first.subarray(end + 1));
  const [token = '', shared = ''] = first.subarray(0, end).toString().split(' ');
  const http2 = connect('http://gateway', { createConnection: () => socket, maxSessionMemory: 4096 });
  http2.on('error', () => http2.destroy());
  const sockets = new Set<Socket>();
  const inSocket = () => {
    const socket = connectSocket({ path: shared, allowHalfOpen: true });
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
    return socket;
  };
  const inSession = () => {
    const stream = http2.request({ ':method': 'CONNECT', ':authority': 'gateway' }, { endStream: false });
    stream.on('error', () => undefined);
    return stream;
  };
  const connection = way === 'over the engine' ? inSession : inSocket;
  const send = (body: string) => {
    const request = httpRequest({
      createConnection: connection,
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { host: 'model', authorization: `Bearer ${token}`, connection: 'close' },
    });
    request.on('error', () => undefined);
    return request.end(body);
  };
  return {
    token,
    shared,
    http2,
    socket,
    connection,
    send,
    ask: async (model, content = 'hello') =>
      answerOf(await responseOf(send(JSON.stringify({ model, messages: [{ role: 'user', content }] })))),
    [Symbol.dispose]() {
      http2.destroy();
      for (const each of [socket, ...sockets]) each.destroy();
    },
  };
}
