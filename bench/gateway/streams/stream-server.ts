import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Losses } from '../../../src/gateway/translation/losses.ts';
import type { NeutralEvent } from '../../../src/gateway/translation/neutral-answer.ts';
import { textOfEvent } from '../../../src/gateway/wires/lenient.ts';
import { wireTable } from '../../../src/gateway/wires/wire-table.ts';
import { type Wire, wires } from '../../../src/suite/model-config.ts';
import { type Asked, readAsked } from './requests.ts';

/**
 * The models of all sides: streams answers in every wire, as fast as they are read. Writes its URL to the
 * parent.
 */
const framesOf = Object.fromEntries(wires.map((wire) => [wire, framer(wire)])) as Record<
  Wire,
  (characters: number) => Frames
>;

/** A stream in pieces: its beginning with the first word, an event of its middle, its end. */
interface Frames {
  first: Buffer;
  middle: Buffer;
  last: Buffer;
}

function framer(wire: Wire): (characters: number) => Frames {
  return (characters) => {
    let written: string[] = [];
    const writer = wireTable[wire].translation.writeStream(
      {
        request: {
          model: wire,
          streamed: true,
          usageAsked: true,
          messages: [],
          tools: [],
          stop: [],
        },
        at: Date.now(),
        losses: new Losses('lenient', wire),
      },
      (event) => written.push(textOfEvent(event)),
    );
    const bytesOf = (...steps: NeutralEvent[]) => {
      for (const step of steps) writer.take(step);
      const bytes = Buffer.from(written.join(''));
      written = [];
      return bytes;
    };
    return {
      first: bytesOf({ type: 'start', id: 'answer-1', model: wire }, { type: 'text', text: 'Yes' }),
      middle: bytesOf({ type: 'text', text: words(characters) }),
      last: bytesOf({ type: 'end', stop: 'done', sequence: undefined, usage: { input: 10, output: 2 } }),
    };
  };
}

/**
 * Text as models write it: words, lines, and characters that JSON escapes or UTF-8 gives more than one byte.
 */
function words(characters: number): string {
  const line = ' the file "a.ts" has 12 lines – see below:\n\tconst answer = 42;\n';
  return line.repeat(Math.ceil(characters / line.length)).slice(0, characters);
}

async function* answer(wire: Wire, asked: Asked): AsyncGenerator<Buffer> {
  const { first, middle, last } = framesOf[wire](asked.stream === 'long' ? asked.characters : 1);
  yield first;
  if (asked.stream === 'short') await delay(10);
  else {
    const piece = Buffer.concat(Array.from({ length: Math.ceil(2 ** 16 / middle.length) }, () => middle));
    for (let sent = 0; sent < asked.bytes; sent += piece.length) yield piece;
  }
  yield last;
}

const server = createServer(async (request, response) => {
  const { wire, asked } = readAsked(request.url ?? '', await text(request));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  await pipeline(answer(wire, asked), response);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.send?.(`http://127.0.0.1:${address.port}`);
});
process.once('disconnect', () => process.exit(0));
