import { messageOf, OffsiteError } from '../../base/offsite-error.ts';
import { parseCheckedJson } from '../../base/parse-json.ts';
import { cassettes } from '../../bounds/suite.ts';
import { CassetteLine } from '../../record/cassette-line.ts';
import { readFile } from '../../suite/read-file.ts';
import type { Cassette, RecordedExchange, TrialLabel } from './cassette.ts';
import { repacked } from './cassette-lines.ts';

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
    throw new OffsiteError(`${file}:${lines}: ${why}`, {
      code: 'CASSETTE_UNREADABLE',
      kind: 'input',
      hint: '`offsite export BATCH --cassette FILE` writes a cassette; docs/replay.md describes it.',
    });
  };
  const textOf = (number: number): string =>
    texts[number] ?? refuse(`text ${number} is not defined before this line`);
  for (const line of linesOf(content)) {
    lines += 1;
    if (lines > cassettes.count.lines) refuse(`it has more than ${cassettes.count.lines} lines`);
    const read = lineOf(line, refuse);
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

function lineOf(line: string, refuse: (why: string) => never): CassetteLine {
  let json: unknown;
  try {
    json = parseCheckedJson(line);
  } catch (error) {
    return refuse(messageOf(error));
  }
  const read = CassetteLine.safeParse(json);
  return read.success ? read.data : refuse('it is not a line of a cassette of version 1');
}
