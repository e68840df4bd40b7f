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
  onEvent: (data: string) => void;
  /** Receives lines that belong to no event. */
  onStray: (line: string) => void;
  onTooLong: (bound: string) => void;
}): EventFeed {
  const mostLines = modelAnswers.count.eventLines;
  let isOver = false;
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
    onEvent({ data }) {
      hadEvent = true;
      onEvent(data);
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
