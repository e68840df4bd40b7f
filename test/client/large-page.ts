import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

const runs = 20;
const trialsPerRun = 10;
const largestPiece = 1024 * 1024;

const output = 'ok 1 - “the parser” keeps {the last line} without a \\ newline\n'.repeat(40);
const entry = JSON.stringify({
  _tag: 'command',
  command: `npm test -- --grep "part"`,
  exitCode: 0,
  startedAtMillis: 1_750_000_000_000,
  finishedAtMillis: 1_750_000_000_400,
  output,
  outputTruncated: false,
});

/** A page of 20 runs of 10 trials, of about this many bytes. Nearly all are in trajectories. */
function* largePage(bytes: number): Generator<Buffer> {
  const perTrial = bytes / (runs * trialsPerRun);
  const entries = Buffer.from(`${entry},`.repeat(Math.ceil(Math.min(perTrial, largestPiece) / entry.length)));
  const piecesPerTrial = Math.ceil(perTrial / entries.length);
  yield Buffer.from('{"page":1,"pageSize":20,"runs":[');
  for (let run = 0; run < runs; run++) {
    const head = { id: `run-${run}`, batchId: `batch-${run >> 1}`, local: true, status: 'completed' };
    const setup = JSON.stringify({ prompt: 'Mend the parser. '.repeat(500) });
    yield Buffer.from(`${run ? ',' : ''}${JSON.stringify(head).slice(0, -1)},"setup":${setup},"trials":[`);
    for (let ordinal = 0; ordinal < trialsPerRun; ordinal++) {
      yield Buffer.from(`${ordinal ? ',' : ''}{"trajectory":[`);
      for (let piece = 0; piece < piecesPerTrial; piece++) yield entries;
      const trial = { id: `trial-${run}-${ordinal}`, ordinal, status: 'reported', modelMs: ordinal };
      yield Buffer.from(`${entry}],${JSON.stringify(trial).slice(1)}`);
    }
    yield Buffer.from(']}');
  }
  yield Buffer.from(`],"total":${runs}}`);
}

/** Sends a page as fast as its reader takes it. Nothing of it is stored. Resolves with its bytes. */
export async function sendLargePage(response: ServerResponse, bytes: number): Promise<number> {
  response.writeHead(200, { 'content-type': 'application/json' });
  let sent = 0;
  for (const piece of largePage(bytes)) {
    if (response.destroyed) return sent;
    sent += piece.length;
    if (!response.write(piece)) await drained(response);
  }
  response.end();
  return sent;
}

/** Resolves too if the reader goes away. */
async function drained(response: ServerResponse): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  over.abort();
}
