// Reads one hostile stream as an agent's process does, and prints the result as JSON. The test sets its heap
// size.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AcpMessages } from '../../runners/acp/messages.ts';
import { Updates } from '../../runners/acp/updates.ts';
import { claudeCodeLines } from '../../runners/claude-code/runner.ts';
import { jsonlStream } from '../../runners/command/runner.ts';
import { piLines } from '../../runners/pi/runner.ts';
import { systemClock } from '../../src/base/clock.ts';
import { settleHeap } from '../../src/base/host-program.ts';
import { OutputCapture } from '../../src/base/output-capture.ts';
import { changedPaths } from '../../src/engine/changes/changed-paths.ts';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import { containerOf } from '../../src/engine/container.ts';
import { openClient } from '../../src/engine/docker/client.ts';
import { dockerPort } from '../../src/engine/docker/open.ts';
import type { EnginePort } from '../../src/engine/port/engine-port.ts';
import { cliEnding } from '../../src/harness/cli-ending.ts';
import { cliStream, type LineTaker } from '../../src/harness/cli-stream.ts';
import { TurnRecord } from '../../src/harness/turn-record.ts';
import { RecordReader } from '../../src/validate/sandboxed-records.ts';
import { exited } from '../runners/recorded-streams.ts';

settleHeap();
const mebibyte = 2 ** 20;
const usage = '"usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0},"stopReason":"stop","timestamp":1';
const said = (text: string) =>
  `{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"${text}"}],${usage}}}\n`;
const tool = (id: number, text: string) =>
  `{"type":"tool_execution_start","toolCallId":"${id}","toolName":"edit","args":{"text":"${text}"}}\n`;
const command = (id: number, text: string) =>
  `{"type":"tool_execution_start","toolCallId":"${id}","toolName":"bash","args":{"command":"${text}"}}\n`;
/** A line of `stream: jsonl` about something that has begun. */
const begun = (type: string, id: string) => `${JSON.stringify({ type, id, name: 'a', command: 'a' })}\n`;
const begin = '{"type":"session","id":"one"}\n{"type":"agent_start"}\n';
const end = `${said('the end')}{"type":"agent_settled"}\n`;
const megabyte = 'x'.repeat(mebibyte);

function* times(count: number, piece: (at: number) => string): Generator<string> {
  for (let at = 0; at < count; at += 1) yield piece(at);
}

function times100k(piece: (at: number) => string): string {
  return [...times(100_000, piece)].join('');
}

/** A turn's stream, through the reader of a CLI. */
function turn(pieces: Iterable<string>, lines: (record: TurnRecord) => LineTaker = piLines) {
  const record = new TurnRecord(0);
  const stream = cliStream(record, lines(record), () => 1);
  for (const piece of pieces) stream.push(Buffer.from(piece));
  stream.end();
  const never = new AbortController().signal;
  const ending = cliEnding(
    'The CLI',
    exited(0),
    { status: record.status, ...stream },
    {
      timeoutMs: 1,
      signal: never,
      stop: never,
    },
  );
  const size = JSON.stringify([record.trajectory, record.events]).length;
  return { ending, isWhole: record.isWhole, size, final: record.finalMessage?.slice(0, 100) };
}

/** The messages of an agent that speaks the Agent Client Protocol. Its answers and requests are not read. */
async function conversation(pieces: Iterable<string>) {
  const record = new TurnRecord(0);
  const updates = new Updates(record);
  let unread = 0;
  const messages = new AcpMessages({
    send: (line) => {
      unread += line.length;
      return unread;
    },
    onUpdate: (params, at) => updates.take(params, at),
    onNote: (text, at) => record.note(text, at),
    now: () => 1,
  });
  let broken: string | undefined;
  messages.broken.then((reason) => {
    broken = reason;
  });
  for (const piece of pieces) {
    messages.push(Buffer.from(piece));
    await new Promise(setImmediate);
    if (broken !== undefined) break;
  }
  updates.end();
  const size = JSON.stringify([record.trajectory, record.events]).length;
  return { broken, isWhole: record.isWhole, size, final: record.finalMessage?.slice(0, 100) };
}

const update = (sessionUpdate: string, rest: object) =>
  `${JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update: { sessionUpdate, ...rest } } })}\n`;
const chunk = (text: string, messageId: string) =>
  update('agent_message_chunk', { messageId, content: { type: 'text', text } });

function records(pieces: Iterable<string>) {
  let taken = 0;
  const reader = new RecordReader('nonce', () => {
    taken += 1;
  });
  for (const piece of pieces) reader.push(Buffer.from(piece));
  return { taken, problem: reader.problem?.slice(0, 1000) };
}

/** Asks an engine that answers so. */
async function engineAnswer(pieces: Iterable<string>, ask: (port: EnginePort) => Promise<unknown>) {
  const server = createServer(async ({ url }, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    // What the engine itself says about a container is small; its files and processes are not.
    if (url?.split('?')[0]?.endsWith('/containers/one/json')) {
      response.end(JSON.stringify({ Created: new Date(0).toISOString(), State: { Pid: 0 } }));
      return;
    }
    for (const piece of pieces) {
      if (response.destroyed) return;
      if (!response.write(piece)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
    response.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = openClient({ kind: 'http', host: '127.0.0.1', port }, systemClock);
  try {
    return await ask(dockerPort(client));
  } catch (error) {
    return { code: (error as { code?: string }).code };
  } finally {
    server.closeAllConnections();
    server.close();
    client.close();
  }
}

async function processesOf(port: EnginePort) {
  return { count: (await port.containers.processes('one', 'comm'))?.length };
}

async function changesOf(port: EnginePort) {
  const container = containerOf(port, 'one', {} as ContainerSpec);
  const { signal } = new AbortController();
  const { paths, isCut } = await changedPaths(container, { wanted: 'reported', below: '/workspace', signal });
  return { isSome: paths.length > 1000, isCut };
}

const values = (mebibytes: number) => times(mebibytes, () => '[],'.repeat(mebibyte / 3));

const attacks: Record<string, () => unknown> = {
  'values in one line': () => turn(joined([begin, '{"type":"x","all":['], values(30), ['[]]}\n', end])),
  'parts of a message': () =>
    turn(joined(['{"type":"assistant","message":{"content":['], values(4), ['[]]}}\n']), claudeCodeLines),
  'a line of 30 MB': () => turn([begin, said('x'.repeat(30 * mebibyte)), end]),
  'a line without an end': () => turn(times(300, () => megabyte)),
  'a line in crumbs': () => turn(times(8 * mebibyte, () => 'x')),
  messages: () =>
    turn(
      joined(
        [begin],
        times(600, () => said(megabyte)),
        [end],
      ),
    ),
  tools: () =>
    turn(
      joined(
        [begin],
        times(600, (at) => tool(at, megabyte)),
        [end],
      ),
    ),
  commands: () =>
    turn(
      joined(
        [begin],
        times(600, (at) => command(at, megabyte)),
        [end],
      ),
    ),
  'short messages': () =>
    turn(
      joined(
        [begin],
        times(30, () => said('x').repeat(100_000)),
        [end],
      ),
    ),
  'long ids': () =>
    turn(
      joined(
        [begin],
        times(600, (at) => command(at, 'x').replace(`"${at}"`, `"${at}${megabyte}"`)),
        [end],
      ),
    ),
  'commands of a profile': () =>
    turn(
      joined(
        times(30, (at) => times100k((line) => begun('command', `${at}.${line}`))),
        times(30, () => times100k(() => begun('command', 'the same'))),
        ['{"type":"message","text":"the end"}\n{"type":"end","status":"done"}\n'],
      ),
      jsonlStream.takerFor,
    ),
  "an agent's updates": () =>
    conversation(
      joined(
        times(300, (at) => chunk(megabyte, String(at))),
        times(2, (at) => times100k((line) => chunk('x', `${at}.${line}`))),
        times(300, (at) =>
          update('tool_call', { toolCallId: `a${at}`, title: megabyte, rawInput: { megabyte } }),
        ),
        times(1, (at) =>
          times100k((line) => update('tool_call', { toolCallId: `${at}.${line}`, title: 'x' })),
        ),
        [chunk('the end', 'end')],
      ),
    ),
  "an agent's requests": () =>
    conversation(
      times(100, (at) =>
        times100k((line) => `{"jsonrpc":"2.0","id":"${at}.${line}","method":"terminal/create"}\n`),
      ),
    ),
  'records of values': () => records(joined(['nonce {"kind":"validation","logs":['], values(30), ['[]]}\n'])),
  'parts of a record': () => records(joined([validation, '"logs":['], values(2), ['[]]}\n'])),
  'a record in crumbs': () => records(times(12 * mebibyte, () => 'x')),
  'output in crumbs': () => {
    const captures = Array.from({ length: 8 }, () => new OutputCapture(mebibyte));
    for (let at = 0; at < mebibyte; at += 1) for (const capture of captures) capture.push(Buffer.from('x'));
    return captures.map((capture) => capture.result().text.length);
  },
  "an engine's answer": () => engineAnswer(joined(['{"Processes":['], values(60), ['[]]}']), processesOf),
  changes: () =>
    engineAnswer(joined(['['], times(200, changesOfAFolder), ['{"Path":"/end","Kind":1}]']), changesOf),
};

const validation =
  'nonce {"kind":"validation","name":"a","startedAt":1,"durationMs":1,"status":"passed","logsCut":false,';

/** A megabyte of them. */
function changesOfAFolder(folder: number): string {
  const path = (at: number) => `/workspace/${folder}/${at}/${'x'.repeat(200)}`;
  return Array.from({ length: 4096 }, (_, at) => `{"Path":"${path(at)}","Kind":1},`).join('');
}

function* joined(...parts: Iterable<string>[]): Generator<string> {
  for (const part of parts) yield* part;
}

console.log(JSON.stringify(await attacks[process.argv[2] ?? '']?.()));
