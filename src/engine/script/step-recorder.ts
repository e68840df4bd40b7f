import type { Clock } from '../../clock.ts';
import { OutputCapture } from '../exec/output-capture.ts';
import type { ScriptPiece } from './mark-reader.ts';
import type { ScriptStep } from './script-request.ts';

/** The guardian's last word. */
export interface ScriptOver {
  how: 'done';
  exitCode: number;
  oomKills: number;
  devicesIntact: boolean;
}

interface OpenStep {
  command: string;
  startedAtMillis: number;
  capture: OutputCapture;
}

/** Builds the steps of a script out of the marks and the output between them. */
export class StepRecorder {
  readonly steps: ScriptStep[] = [];
  /** Whether the shell that tells of the steps cannot be read by what it runs. */
  shielded = false;
  readonly #lines: string[];
  readonly #capBytes: number;
  readonly #clock: Clock;
  #open: OpenStep | undefined;

  constructor(lines: string[], capBytes: number, clock: Clock) {
    this.#lines = lines;
    this.#capBytes = capBytes;
    this.#clock = clock;
  }

  /**
   * Takes the next piece; the answer is the last word, once it has come. Output between steps is nobody's.
   */
  take(piece: ScriptPiece): ScriptOver | undefined {
    if (piece.kind === 'output') {
      this.#open?.capture.push(piece.bytes);
      return undefined;
    }
    const [kind, first = '', second = '', third = ''] = piece.fields;
    switch (kind) {
      case 'S':
        this.shielded = first === 'yes';
        return undefined;
      case 'B':
        this.close({ ended: 'lost' });
        this.#open = {
          command: this.#lines.slice(Number(first), Number(second)).join('\n'),
          startedAtMillis: this.#millis(third),
          capture: new OutputCapture(this.#capBytes),
        };
        return undefined;
      case 'E':
        this.close({ ended: 'exited', exitCode: Number(first) }, second);
        return undefined;
      case 'Z':
        // A step still open is one that left the shell: the shell's exit code is its own.
        this.close({ ended: 'exited', exitCode: Number(first) });
        return {
          how: 'done',
          exitCode: Number(first),
          oomKills: Number(second),
          devicesIntact: third === 'yes',
        };
      default:
        return undefined;
    }
  }

  /** Ends the step that is running, if one is. `micros` is the container's time, when it is known. */
  close(
    end: { ended: 'exited'; exitCode: number } | { ended: 'timed-out' | 'canceled' | 'out-of-disk' | 'lost' },
    micros = '',
  ): void {
    if (this.#open === undefined) return;
    const { command, startedAtMillis, capture } = this.#open;
    this.#open = undefined;
    const output = capture.result();
    this.steps.push({
      command,
      startedAtMillis,
      // Two clocks may have told the two times.
      finishedAtMillis: Math.max(startedAtMillis, this.#millis(micros)),
      output: output.text,
      outputTruncated: output.truncated,
      outputBytes: output.totalBytes,
      ...end,
    });
  }

  /** A script that unset EPOCHREALTIME, or left its shell, leaves us our own clock. */
  #millis(micros: string): number {
    return micros === '' ? this.#clock.now() : Math.floor(Number(micros) / 1000);
  }
}
