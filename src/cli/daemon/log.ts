import { stripVTControlCharacters, styleText } from 'node:util';
import { type Logger, pino } from 'pino';
import type { Redactor } from '../../redaction/redactor.ts';

/** What every line has, and its reader does not need on a terminal. */
const common = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err']);

const marks: Record<string, string> = { 20: '·', 30: ' ', 40: '!', 50: '✗', 60: '✗' };

/**
 * The daemon's log: one line of JSON an event on `stream`; for people, on a terminal, one of text. Secrets are taken out.
 */
export function daemonLog(
  stream: { write(line: string): unknown; isTTY?: boolean | undefined },
  redactor: Redactor,
): Logger {
  const show = stream.isTTY ? lineForPeople : (line: string) => line;
  const destination = { write: (line: string) => void stream.write(redactor.text(show(line))) };
  return pino({ base: undefined, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

/** `12:03:44   finished a trial  case=a trial=0 verdict=passed` */
function lineForPeople(json: string): string {
  const event = JSON.parse(json) as Record<string, unknown> & { level: number; time: string; msg: string };
  const fields = Object.entries(event)
    .filter(([name, value]) => !common.has(name) && value !== undefined)
    .map(([name, value]) => `${name}=${typeof value === 'object' ? JSON.stringify(value) : value}`);
  const time = styleText('dim', event.time.slice(11, 19));
  const { stack } = (event.err ?? {}) as { stack?: string };
  const line = `${event.msg}  ${styleText('dim', plain(fields.join(' ')))}${stack ? `\n${plain(stack)}` : ''}`;
  return `${time} ${marks[event.level] ?? '?'} ${line}\n`;
}

/** Without what would steer the terminal: a sandbox may have printed it. */
function plain(text: string): string {
  return stripVTControlCharacters(text);
}
