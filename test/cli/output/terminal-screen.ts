import { Writable } from 'node:stream';
import xterm from '@xterm/headless';

/** A terminal that a test reads as a person sees it. What is written to it, is what a program sends. */
export class TerminalScreen extends Writable {
  readonly isTTY = true;
  /** All that was sent. */
  sent = '';
  readonly #terminal: xterm.Terminal;

  constructor({ columns = 80, rows = 24 } = {}) {
    super();
    this.#terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, convertEol: true });
  }

  get columns(): number {
    return this.#terminal.cols;
  }

  get rows(): number {
    return this.#terminal.rows;
  }

  /** Gives the window another size, as its user does. */
  async resize(columns: number, rows: number): Promise<void> {
    await this.#written();
    this.#terminal.resize(columns, rows);
    this.emit('resize');
  }

  /** The lines from the first that was ever printed to the last one that is not empty. */
  async lines(): Promise<string[]> {
    await this.#written();
    const { active } = this.#terminal.buffer;
    const lines = Array.from({ length: active.length }, (_, index) => active.getLine(index));
    const texts = lines.map((line) => line?.translateToString(true) ?? '');
    return texts.slice(0, texts.findLastIndex((text) => text !== '') + 1);
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.sent += chunk;
    this.#terminal.write(chunk, done);
  }

  /** Resolves when the terminal has read everything, also what this stream holds until it is its turn. */
  #written(): Promise<unknown> {
    return new Promise((resolve) => this.write('', resolve));
  }
}
