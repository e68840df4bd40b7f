import { inputError, messageOf } from '../../base/offsite-error.ts';
import { parseCheckedJson } from '../../base/parse-json.ts';
import { cassettes } from '../../bounds/suite.ts';
import { CassetteLine, type ExchangeLine } from '../../record/cassette-line.ts';
import { readFile } from '../../suite/read-file.ts';
import type { Cassette, RecordedExchange, TrialLabel } from './cassette.ts';

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

interface Trial {
  label: TrialLabel;
  exchanges: RecordedExchange[];
}

/**
 * Reads the file of a cassette. It may come from anybody: all of it is bounded and checked. Throws the input
 * errors `CASSETTE_UNREADABLE`, with the line, and `FILE_UNREADABLE`.
 */
export function readCassette(file: string): Cassette {
  const { content } = readFile(file, { maximumBytes: cassettes.bytes.file });
  const trials: Trial[] = [];
  const texts: string[] = [];
  let lines = 0;
  let expanded = 0;
  const refuse = (why: string): never => {
    throw inputError('CASSETTE_UNREADABLE', `${file}:${lines}: ${why}`, {
      hint: '`offsite export BATCH --cassette FILE` writes a cassette; docs/replay.md describes it.',
    });
  };
  const textOf = (number: number): string =>
    texts[number] ?? refuse(`text ${number} is not defined before this line`);
  for (const line of linesOf(content)) {
    lines += 1;
    if (lines > cassettes.count.lines) refuse(`it has more than ${cassettes.count.lines} lines`);
    const read = readLine(line, refuse);
    if (lines === 1 && !('cassette' in read)) refuse('the first line must be the header of the cassette');
    if ('text' in read) texts.push(read.text);
    else if ('trial' in read) {
      if (trials.length >= cassettes.count.trials)
        refuse(`it has more than ${cassettes.count.trials} trials`);
      trials.push({ label: read.trial, exchanges: [] });
    } else if ('exchange' in read) {
      const trial = trials.at(-1) ?? refuse('an exchange comes before the first trial');
      const { number, role, model, wire, from, status, answer } = read.exchange;
      let size = 0;
      const request = repacked(read.exchange, (text) => {
        size += textOf(text).length;
        return textOf(text);
      });
      expanded += size;
      if (size > cassettes.bytes.request || expanded > cassettes.bytes.requests)
        refuse('its requests are too large');
      const body = textOf(answer);
      const recorded = () => ({ wire, status, body: Buffer.from(body) });
      trial.exchanges.push({ number, role, model, wire, from, request, answer: recorded });
    } else if (lines > 1) refuse('a second cassette begins');
  }
  if (lines === 0) refuse('it is empty');
  return {
    name: file,
    trials: trials.map(({ label, exchanges }) => ({ label, exchanges: () => exchanges })),
  };
}

function* linesOf(content: Buffer): Generator<string> {
  for (let from = 0; from < content.length; ) {
    const end = content.indexOf(0x0a, from);
    const to = end === -1 ? content.length : end;
    yield content.toString('utf8', from, to);
    from = to + 1;
  }
}

function readLine(line: string, refuse: (why: string) => never): CassetteLine {
  let json: unknown;
  try {
    json = parseCheckedJson(line);
  } catch (error) {
    return refuse(messageOf(error));
  }
  const read = CassetteLine.safeParse(json);
  return read.success ? read.data : refuse('it is not a line of a cassette of version 1');
}
