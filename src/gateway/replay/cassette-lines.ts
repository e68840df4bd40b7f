import type { CassetteLine, ExchangeLine } from '../../record/cassette-line.ts';
import type { Cassette, RecordedExchange } from './cassette.ts';

/** A cassette as the lines of its file. */
export function* cassetteLines({ name, trials }: Cassette, suite: string): Generator<CassetteLine> {
  yield { cassette: 1, of: name, suite };
  const texts = new Map<string, number>();
  for (const trial of trials) {
    yield { trial: trial.label };
    for (const exchange of trial.exchanges()) {
      const added: string[] = [];
      const numberOf = (text: string) => {
        const known = texts.get(text);
        if (known !== undefined) return known;
        added.push(text);
        texts.set(text, texts.size);
        return texts.size - 1;
      };
      const line = exchangeLine(exchange, numberOf);
      for (const text of added) yield { text };
      yield line;
    }
  }
}

function exchangeLine(
  { number, role, model, wire, from, request, answer }: RecordedExchange,
  numberOf: (text: string) => number,
): ExchangeLine {
  const { status, body } = answer();
  const about = { number, role, model, wire, ...(from && { from }) };
  const packed = repacked(request, numberOf);
  return { exchange: { ...about, ...packed, status, answer: numberOf(body.toString('utf8')) } };
}

/** A request, with its texts or with the numbers of their lines. */
interface Packed<Text> {
  context: Text[];
  turns: (
    | { by: 'user'; said: Text; media: string[]; results: Text[] }
    | { by: 'model'; text: Text; calls: { name: string; arguments: Text }[] }
  )[];
  tools: { name: string; definition: Text }[];
  options: Text;
}

export function repacked<From, To>(
  { context, turns, tools, options }: Packed<From>,
  of: (text: From) => To,
): Packed<To> {
  return {
    context: context.map(of),
    turns: turns.map((turn) =>
      turn.by === 'user'
        ? { ...turn, said: of(turn.said), results: turn.results.map(of) }
        : {
            ...turn,
            text: of(turn.text),
            calls: turn.calls.map((call) => ({ ...call, arguments: of(call.arguments) })),
          },
    ),
    tools: tools.map(({ name, definition }) => ({ name, definition: of(definition) })),
    options: of(options),
  };
}
