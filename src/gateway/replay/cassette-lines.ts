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
  const { context, turns, tools, options } = request;
  const { status, body } = answer();
  return {
    exchange: {
      number,
      role,
      model,
      wire,
      ...(from && { from }),
      context: context.map(numberOf),
      turns: turns.map((turn) =>
        turn.by === 'user'
          ? { ...turn, said: numberOf(turn.said), results: turn.results.map(numberOf) }
          : {
              ...turn,
              text: numberOf(turn.text),
              calls: turn.calls.map((call) => ({ ...call, arguments: numberOf(call.arguments) })),
            },
      ),
      tools: tools.map(({ name, definition }) => ({ name, definition: numberOf(definition) })),
      options: numberOf(options),
      status,
      answer: numberOf(body.toString('utf8')),
    },
  };
}
