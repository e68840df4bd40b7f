import { clearScreenDown, cursorTo, moveCursor } from 'node:readline';
import { createLogUpdate } from 'log-update';
import stringWidth from 'string-width';
import type { Content, Output } from '../../text/output.ts';
import type { Display, Size } from './frame.ts';

/** Milliseconds between two drawings. */
const drawMs = 200;

/** Milliseconds after which times have changed, so that the lines are drawn again. */
const tickMs = 1_000;

export interface LiveParts {
  stream: NodeJS.WriteStream;
  /** Prints on the same stream. */
  err: Output;
  /** The lines to show at the bottom of a terminal of this size. */
  frame(size: Size): string[];
}

/**
 * Keeps lines at the bottom of a terminal that are redrawn when something changes. What is printed stays
 * above them.
 */
export function liveDisplay({ stream, err, frame }: LiveParts): Display {
  const log = createLogUpdate(stream);
  let drawn: string[] = [];
  let drawnAt = Number.NEGATIVE_INFINITY;
  let waiting: NodeJS.Timeout | undefined;
  let isOver = false;
  /** Printed since the last drawing. */
  let printed: Content[] = [];

  const clear = () => {
    if (drawn.length > 0) log.clear();
    drawn = [];
  };
  const printAll = () => {
    if (printed.length === 0) return;
    clear();
    for (const content of printed) err.print(content);
    printed = [];
  };
  const end = () => {
    printAll();
    clear();
  };
  const draw = () => {
    clearTimeout(waiting);
    waiting = undefined;
    drawnAt = performance.now();
    printAll();
    const lines = frame(sizeOf(stream));
    if (lines.length === 0) clear();
    else log(lines.join('\n'));
    drawn = lines;
  };
  const drawSoon = () => {
    if (waiting) return;
    const dueMs = drawnAt + drawMs - performance.now();
    if (dueMs <= 0) draw();
    else waiting = setTimeout(draw, dueMs).unref();
  };
  const resized = () => {
    if (drawn.length > 0) eraseWrapped(stream, drawn);
    log.done();
    draw();
  };
  const ticking = setInterval(drawSoon, tickMs).unref();
  stream.on('resize', resized);
  process.on('exit', end);
  return {
    isLive: true,
    print(content) {
      printed.push(content);
      if (isOver) printAll();
      else drawSoon();
    },
    changed: drawSoon,
    [Symbol.dispose]() {
      clearInterval(ticking);
      clearTimeout(waiting);
      stream.off('resize', resized);
      process.off('exit', end);
      isOver = true;
      end();
      log.done();
    },
  };
}

function sizeOf({ columns, rows }: NodeJS.WriteStream): Size {
  // A terminal that does not know its size says 0.
  return { columns: columns || 80, rows: rows || 24 };
}

/** Erases lines that the terminal has wrapped, because it became narrower after they were drawn. */
function eraseWrapped(stream: NodeJS.WriteStream, lines: readonly string[]): void {
  const { columns } = sizeOf(stream);
  const rows = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(stringWidth(line) / columns)), 0);
  moveCursor(stream, 0, -rows);
  cursorTo(stream, 0);
  clearScreenDown(stream);
}
