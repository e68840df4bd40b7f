import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Wire, wires } from '../../src/suite/model-config.ts';
import { someOf } from '../short-tests.ts';
import type { Step } from './test-upstream.ts';
import { type At, clients } from './translation/clients.ts';
import { servedPlace } from './translation/translated-place.ts';

/**
 * What servers send. Each folder of `servers` is a case: `answer.txt` is the body, and `case.json` says what
 * an agent must get from it. To add a report, add a folder.
 */
interface ServerCase {
  name: string;
  wire: Wire;
  /** Whether the client asks for a stream; default: yes. */
  streamed?: boolean;
  /** Default: that of a stream of events. Empty: none. */
  contentType?: string;
  /** The public report that it is like. */
  report?: string;
  right: Right;
}

interface Right {
  text?: string;
  reasoning?: string;
  /** Names and arguments. */
  calls?: [string, object][];
  stop?: keyof (typeof stops)['gemini'];
  /** Tokens of input and output. */
  usage?: [number, number];
  /** The answer must be an error that says this. */
  error?: string;
}

const stops = {
  'openai-chat': { done: 'stop', tools: 'tool_calls', length: 'length', sequence: 'stop' },
  'openai-responses': {
    done: 'completed',
    tools: 'completed',
    length: 'max_output_tokens',
    sequence: 'completed',
  },
  'anthropic-messages': {
    done: 'end_turn',
    tools: 'tool_use',
    length: 'max_tokens',
    sequence: 'stop_sequence',
  },
  gemini: { done: 'STOP', tools: 'STOP', length: 'MAX_TOKENS', sequence: 'STOP' },
} as const;

const folder = join(import.meta.dirname, 'servers');
const cases = readdirSync(folder)
  .toSorted()
  .map(
    (name): ServerCase => ({ name, ...JSON.parse(readFileSync(join(folder, name, 'case.json'), 'utf8')) }),
  );

/** What a client library makes of an answer. */
type Outcome = Right | { thrown: string };

async function outcomeOf(at: At, wire: Wire, streamed: boolean): Promise<Outcome> {
  try {
    const { text, reasoning, calls, stop, input, output } = await clients[wire].ask(
      at,
      [{ user: 'Hello' }],
      streamed,
    );
    if (stop === 'failed') return { thrown: 'the response failed' };
    const usage =
      input === undefined || output === undefined ? {} : { usage: [input, output] as [number, number] };
    const named = calls.map(({ name, arguments: given }): [string, object] => [name, Object(given)]);
    return { text, reasoning, calls: named, stop: stop as never, ...usage };
  } catch (error) {
    return { thrown: String(error) };
  }
}

/** How one outcome differs from the right one; undefined if it does not. */
function differenceOf({ right }: ServerCase, wire: Wire, outcome: Outcome): string | undefined {
  if (right.error !== undefined) {
    if (!('thrown' in outcome)) return 'no error';
    // This library gives up a stream that breaks off, and what it said before.
    const isSaid = wire === 'openai-responses' || outcome.thrown.includes(right.error);
    return isSaid ? undefined : `not its words, but ${outcome.thrown}`;
  }
  if ('thrown' in outcome) return outcome.thrown;
  const wanted = {
    text: right.text ?? '',
    reasoning: right.reasoning ?? '',
    calls: right.calls ?? [],
    stop: right.stop && stops[wire][right.stop],
    ...(right.usage && { usage: right.usage }),
  };
  const got = { ...outcome, usage: right.usage && outcome.usage };
  const differs = Object.entries(wanted).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(got[name as keyof typeof got]),
  );
  return differs.length === 0
    ? undefined
    : differs.map(([name]) => `${name}: ${JSON.stringify(got[name as keyof typeof got])}`).join(', ');
}

/** The cases by what the library of the server's own wire makes of them: the wire, `right`, `differs` or `fails`. */
const found: { name: string; wire: Wire; read: string; report?: string | undefined }[] = [];

test.each(cases)('$name is read by every client', async (one) => {
  const { name, wire, streamed = true, contentType = 'text/event-stream', right, report } = one;
  const body = readFileSync(join(folder, name, 'answer.txt'));
  const step: Step = (response) =>
    response.writeHead(200, contentType === '' ? {} : { 'content-type': contentType }).end(body);
  await using place = await servedPlace(wire, {}, step);
  const origin = place.upstream.url.replace(/\/v1$/, '');
  const direct = await outcomeOf({ origin, token: 'none' }, wire, streamed);
  const wrong: string[] = [];
  // The one that comes first is another one for each case.
  const turned = cases.indexOf(one) % wires.length;
  const others = someOf(
    [...wires, ...wires].slice(turned, turned + wires.length).filter((each) => each !== wire),
  );
  for (const client of [wire, ...others]) {
    const outcome = await outcomeOf(place, client, streamed);
    const difference = differenceOf(one, client, outcome);
    if (client !== wire) {
      if (difference !== undefined) wrong.push(`${client}: ${difference}`);
      continue;
    }
    const read = difference === undefined ? 'right' : 'thrown' in outcome ? 'fails' : 'differs';
    found.push({ name, wire, read, report });
    // On the same wire, the client gets what the server sent.
    if ('thrown' in direct) expect(outcome).toHaveProperty('thrown');
    else expect(outcome).toEqual(direct);
  }
  expect(wrong).toEqual([]);
  const { exchanges } = await place.session.account();
  expect(exchanges.filter(({ translation }) => translation)).toHaveLength(others.length);
  // What the record says of the server is what its translated clients got.
  for (const { failure } of exchanges) {
    if (right.error === undefined) expect(failure).toBeUndefined();
    else expect(failure).toContain(right.error);
  }
});

test('the page of what servers send lists every case', async () => {
  expect(found).toHaveLength(cases.length);
  const rows = wires.flatMap((wire) =>
    ['right', 'differs', 'fails'].flatMap((read) => {
      const names = found
        .filter((each) => each.wire === wire && each.read === read)
        .map(({ name, report }) => (report === undefined ? name : `[${name}](${report})`));
      return names.length === 0 ? [] : [`| ${wire} | ${read} | ${names.length} | ${names.join(', ')} |`];
    }),
  );
  await expect(`${pageHead}${rows.join('\n')}\n`).toMatchFileSnapshot(
    '../../docs/reference/model-servers.md',
  );
});

const pageHead = `# What model servers send

Each case is a folder of \`test/gateway/servers\`: the bytes that a server sends, and what an agent must get
from them. Translated to another wire, each is read right by the official library of that wire. On its own
wire, the library gets the server's bytes. It then reads what is *right*, which may be an error with the
server's words; or it *differs*: it loses a part, joins parts that are separate, or tells other words; or it
*fails*.

| wire | its own library | cases | which |
| --- | --- | --- | --- |
`;
