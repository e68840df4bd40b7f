import { type Logger, pino } from 'pino';
import { logDestination, type Output } from '../../text/output.ts';
import { joined, lines, ours, type Printable, stack, styled, text } from '../../text/printable.ts';

/** Fields of every line that a reader does not need on a terminal. */
const common = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err']);

const marks: Record<string, string> = { 20: '·', 30: ' ', 40: '!', 50: '✗', 60: '✗' };

/**
 * The daemon's log: one line of JSON per event, or one line of text if the output is a terminal.
 *
 * @param logged called after each line
 */
export function daemonLog(output: Output, logged: () => void = () => undefined): Logger {
  const written = output.isTerminal
    ? { write: (line: string) => output.print(lineForPeople(line)) }
    : logDestination(output);
  const destination = {
    write(line: string) {
      written.write(line);
      logged();
    },
  };
  return pino({ base: undefined, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

/** `12:03:44   finished a trial  case=a trial=0 verdict=passed` */
function lineForPeople(json: string): Printable {
  const event = JSON.parse(json) as Record<string, unknown> & { level: number; time: string; msg: string };
  const fields = Object.entries(event)
    .filter(([name, value]) => !common.has(name) && value !== undefined)
    .map(
      ([name, value]) => text`${name}=${typeof value === 'object' ? JSON.stringify(value) : String(value)}`,
    );
  const time = styled('dim', ours(event.time.slice(11, 19)));
  const mark = ours(marks[event.level] ?? '?');
  const { stack: trace } = (event.err ?? {}) as { stack?: string };
  const line = text`${time} ${mark} ${lines(event.msg)}  ${styled('dim', joined(fields, ' '))}`;
  return trace === undefined ? line : stack([line, lines(trace)]);
}
