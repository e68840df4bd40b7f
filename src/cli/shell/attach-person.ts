import { once } from 'node:events';
import { StringDecoder } from 'node:string_decoder';
import { listenTo } from '../../base/foreign-traffic.ts';
import { commandOutput } from '../../bounds/sandbox.ts';
import type { ContainerTerminal, TerminalEnd } from '../../engine/exec/terminal.ts';
import type { TerminalSize } from '../../engine/port/exec.ts';
import type { Output } from '../../text/output.ts';
import type { PersonsTerminal } from '../terminal.ts';

/**
 * Escape sequences that undo what a program may have left: the other screen, mouse reports, bracketed paste,
 * a hidden cursor, colours.
 */
const restored =
  '\u001b[?1049l\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l\u001b[?2004l\u001b[!p\u001b[?25h\u001b[0m';

export function sizeOf({ screen }: PersonsTerminal): TerminalSize {
  return { columns: screen.columns, rows: screen.rows };
}

/**
 * Connects a person's terminal to one in a container until the command there ends. All keys go to the
 * command, Ctrl-C too. Rejects when `signal` aborts, or when the person's terminal is gone.
 */
export async function attachPerson(
  person: PersonsTerminal,
  terminal: ContainerTerminal,
  signal: AbortSignal,
): Promise<TerminalEnd> {
  const { keys, screen } = person;
  const { stream } = terminal;
  const resize = () => void terminal.resize(sizeOf(person));
  const onKey = (key: Buffer) => void stream.write(key);
  const left = new AbortController();
  const over = AbortSignal.any([left.signal, signal]);
  const gone = once(keys, 'end', { signal: over }).then(() => {
    throw new Error('the terminal is gone');
  });
  gone.catch(() => undefined);
  listenTo(
    stream,
    {
      data: (chunk: Buffer) => {
        if (screen.write(chunk)) return;
        stream.pause();
        screen.once('drain', () => stream.resume());
      },
    },
    () => stream.destroy(),
  );
  keys.setRawMode(true);
  screen.on('resize', resize);
  keys.on('data', onKey);
  try {
    return await Promise.race([terminal.ended, gone]);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    left.abort();
    keys.off('data', onKey);
    screen.off('resize', resize);
    keys.setRawMode(false);
    keys.pause();
    screen.write(restored);
  }
}

export interface LinePrinter extends Disposable {
  add(bytes: Buffer): void;
}

/** Prints what a program writes line by line, as it comes. Disposing prints the rest. */
export function linePrinter(output: Output): LinePrinter {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  return {
    add(bytes) {
      const lines = `${rest}${decoder.write(bytes)}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) output.print(line.replace(/\r$/, ''));
      if (rest.length > commandOutput.bytes.unendedLine) {
        output.print(rest);
        rest = '';
      }
    },
    [Symbol.dispose]() {
      rest += decoder.end();
      if (rest !== '') output.print(rest);
      rest = '';
    },
  };
}
