import type { Clock } from '../../clock.ts';
import { OutputCapture } from '../exec/output-capture.ts';
import type { ScriptPiece } from './mark-reader.ts';
import type { ScriptStep } from './script-request.ts';

/** The content of the guardian's last mark. */
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
  /** Whether the script's programs cannot read the shell that reports the steps. */
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

  /** Takes the next piece; returns the last mark, once it has come. Output between steps is dropped. */
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
        // A step that is still open left the shell, so the shell's exit code is its exit code.
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

  /** Ends the step that is running, if one is. `micros` is the container's time, if it is known. */
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
      // The two times may come from different clocks.
      finishedAtMillis: Math.max(startedAtMillis, this.#millis(micros)),
      output: output.text,
      outputTruncated: output.truncated,
      outputBytes: output.totalBytes,
      ...end,
    });
  }

  /** Uses this process's clock if the script unset EPOCHREALTIME or left its shell. */
  #millis(micros: string): number {
    return micros === '' ? this.#clock.now() : Math.floor(Number(micros) / 1000);
  }
}
