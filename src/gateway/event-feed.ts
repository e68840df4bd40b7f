import { createParser } from 'eventsource-parser';
import { modelAnswers } from '../bounds/model.ts';

/** Reads the server-sent events of a text that comes in pieces. */
export interface EventFeed {
  feed(text: string): void;
  /** About how many bytes it keeps. */
  held(): number;
}

/**
 * Reads events of up to `longest` characters. The number of lines is limited too, because each line takes
 * more memory than its characters. `onTooLong` is called once, with the bound; then nothing more is read.
 */
export function eventFeed({
  longest,
  onEvent,
  onStray,
  onTooLong,
}: {
  longest: number;
  /** `name`: that of its `event` line, if it has one. */
  onEvent: (data: string, name: string | undefined) => void;
  /** Receives lines that belong to no event. */
  onStray: (line: string) => void;
  onTooLong: (bound: string) => void;
}): EventFeed {
  const mostLines = modelAnswers.count.eventLines;
  let isOver = false;
  let isInLine = false;
  let hadEvent = false;
  /** Characters and lines since about the end of the last event. */
  let pending = 0;
  let lines = 0;
  const giveUp = (bound: string) => {
    if (isOver) return;
    isOver = true;
    onTooLong(bound);
  };
  const parser = createParser({
    maxBufferSize: longest,
    onEvent({ data, event }) {
      hadEvent = true;
      onEvent(data, event);
    },
    onError({ type, line = '' }) {
      if (type === 'unknown-field') onStray(line);
      // After this error the parser accepts no more input.
      if (type === 'max-buffer-size-exceeded') giveUp(`${longest} characters`);
    },
  });
  return {
    feed(text) {
      if (isOver || text === '') return;
      hadEvent = false;
      const last = text.lastIndexOf('\n') + 1;
      const tail = last > 0 || !isInLine ? text.slice(last) : '';
      isInLine = last < text.length;
      // The parser drops the beginning of a line that is no field.
      if (!isEvents(tail) && !isBlank(tail)) onStray(tail);
      parser.feed(text);
      const end = Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\r\n\r\n'));
      const from = Math.max(0, end);
      const isNew = hadEvent || end !== -1;
      pending = Math.min(longest, (isNew ? 0 : pending) + text.length - from);
      lines = (isNew ? 0 : lines) + linesIn(text, from);
      if (lines > mostLines) giveUp(`${mostLines} lines`);
    },
    // A character may need two bytes.
    held: () => (isOver ? 0 : 2 * pending),
  };
}

function linesIn(text: string, from: number): number {
  return text.slice(from).split(/\r\n|\r|\n/).length - 1;
}

/** Whether a body begins as a stream of events does. Servers send streams under any content type. */
export function isEvents(body: string): boolean {
  return /^[\s\uFEFF]*(data|event|id|retry|:)/.test(body.slice(0, modelAnswers.bytes.blanks));
}

/** Whether a body begins as a JSON document does. */
export function isDocument(body: string): boolean {
  return /^[\s\uFEFF]*[{[]/.test(body);
}

/** Whether the beginning of a body is too short to say what it is. */
export function isBlank(beginning: string): boolean {
  return /^[\s\uFEFF]*(d|da|dat|e|ev|eve|even|i|r|re|ret|retr)?$/.test(beginning);
}
