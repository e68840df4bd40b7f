import type { Clock } from '../../base/clock.ts';
import { OutputCapture } from '../../base/output-capture.ts';
import type { MarkedPiece } from '../exec/mark-reader.ts';
import type { MarkSeal } from './mark-seal.ts';

/** The content of the guardian's last mark. */
export interface ScriptOver {
  oomKills: number;
  devicesIntact: boolean;
}

interface Mark {
  /** When it arrived. Epoch milliseconds. */
  at: number;
  /** The container's time, in microseconds. Empty if it is not known. */
  micros: string;
}

interface OpenStep {
  command: string;
  begun: Mark;
  capture: OutputCapture;
}

/** Whether a line of a script is neither empty nor a comment. */
export const isCommand = (line: string) => !/^\s*(#.*)?$/.test(line);

type StepEnd =
  /** `unreadable`: bash cannot read the command, and nothing of it ran. Its exit code is 2. */
  | { ended: 'exited'; exitCode: number; unreadable?: true }
  /** `lost`: the next command began, or the script ended, without a mark for the end of this one. */
  | { ended: 'timed-out' | 'canceled' | 'out-of-disk' | 'lost'; exitCode?: undefined };

/** The driver's word for a command that bash cannot read. */
const unreadable = '256';

function endOf(status: string): StepEnd {
  if (status === unreadable) return { ended: 'exited', exitCode: 2, unreadable: true };
  return { ended: 'exited', exitCode: Number(status) };
}

/** Builds the steps of a script out of the marks and the output between them. */
export class StepRecorder {
  readonly steps: ScriptStep[] = [];
  /** Whether the script's programs cannot read the shell that reports the steps. */
  shielded = false;
  /** Whether a driver said anything at all: without bash there is none. */
  hasBegun = false;
  readonly #lines: string[];
  readonly #capBytes: number;
  readonly #clock: Clock;
  readonly #seal: MarkSeal;
  /** When the last step ended, or the script began. Epoch milliseconds. */
  #endedAt: number;
  #open: OpenStep | undefined;
  /** The first line that no command has taken yet. */
  #next = 0;
  /** Whether the driver has come to the end of the script, or a step has left its shell. */
  #isOver = false;
  /** Whether a mark was not the driver's next one. From then on, nothing is known. */
  #isBroken = false;

  constructor(lines: string[], seal: MarkSeal, capBytes: number, clock: Clock) {
    this.#lines = lines;
    this.#seal = seal;
    this.#capBytes = capBytes;
    this.#clock = clock;
    this.#endedAt = clock.now();
  }

  /** Takes the next piece; returns the last mark, once it has come. Output between steps is dropped. */
  take(piece: MarkedPiece): ScriptOver | undefined {
    if (piece.kind === 'output') {
      this.#open?.capture.push(piece.bytes);
      return undefined;
    }
    if (piece.fields[0] === 'Z') return this.#takeLast(piece.fields);
    this.hasBegun = true;
    if (this.#isBroken) return undefined;
    const [, kind, first = '', second = '', micros = ''] = piece.fields;
    if (!this.#seal.isNext(piece.fields)) {
      if (this.#open) this.#close({ ended: 'lost' });
      else this.#lose({ ended: 'lost' });
      this.#isBroken = this.#isOver = true;
      return undefined;
    }
    switch (kind) {
      case 'S':
        this.shielded = first === '1';
        return undefined;
      case 'B':
        if (this.#open) this.#close({ ended: 'lost' });
        this.#passTo(Number(first));
        this.#next = Number(second);
        this.#open = {
          command: this.#lines.slice(Number(first), Number(second)).join('\n'),
          begun: { at: this.#clock.now(), micros },
          capture: new OutputCapture(this.#capBytes),
        };
        return undefined;
      case 'E':
        if (this.#open) this.#close(endOf(first), micros);
        else this.#lose({ ended: 'lost' });
        return undefined;
      case 'D':
        this.#passTo(this.#lines.length);
        this.#isOver = true;
        return undefined;
      default:
        return undefined;
    }
  }

  #takeLast([, status = '', oomKills = '', devices = '']: string[]): ScriptOver {
    // A step that is still open left the shell, so the shell's exit code is its exit code.
    const exitCode = status === this.#seal.ended ? 0 : Number(status);
    const isKnown = status === this.#seal.ended || exitCode > 0;
    this.end(isKnown ? { ended: 'exited', exitCode } : { ended: 'lost' });
    return { oomKills: Number(oomKills), devicesIntact: devices === this.#seal.intact };
  }

  /**
   * Ends the script. A step that is running ends as `how` says. Nothing of the script can end it between two
   * steps. So if it ends there with commands left, a step is added that stands for all that never ran. (After
   * an incomplete command, bash exits before the driver can report the end, but then no line is left.)
   */
  end(how: StepEnd): void {
    const left = this.#open;
    if (left) this.#close(how);
    else if (!this.#isOver && this.#lines.slice(this.#next).some(isCommand))
      this.#lose(how.ended === 'exited' ? { ended: 'lost' } : how);
    this.#isOver = true;
  }

  /** Ends a script whose end is not reported. A step is added if all others succeeded. */
  breakOff(exitCode: number): void {
    this.end({ ended: 'exited', exitCode });
    if (this.steps.every((step) => step.ended === 'exited' && step.exitCode === 0))
      this.#lose({ ended: 'lost' });
  }

  /** The driver skips only empty lines and comments. Anything else that was skipped ran without a report. */
  #passTo(line: number): void {
    const passed = this.#lines.slice(this.#next, line);
    if (line < this.#next || passed.some(isCommand)) this.#lose({ ended: 'lost' });
    this.#next = line;
  }

  /** Adds a step whose end is not known. */
  #lose(how: StepEnd): void {
    const command = this.#lines.slice(this.#next).find(isCommand) ?? '';
    const at = this.#clock.now();
    const output = { output: '', outputTruncated: false, outputBytes: 0 };
    this.steps.push({ command, startedAtMillis: at, finishedAtMillis: at, ...output, ...how });
  }

  /** @param micros the container's time in the mark of the end, if it is known */
  #close(how: StepEnd, micros = ''): void {
    if (this.#open === undefined) return;
    const { command, begun, capture } = this.#open;
    this.#open = undefined;
    const output = capture.result();
    this.steps.push({
      command,
      ...this.#span(begun, { micros, at: this.#clock.now() }),
      output: output.text,
      outputTruncated: output.truncated,
      outputBytes: output.totalBytes,
      ...how,
    });
  }

  /**
   * When a step began and ended. How long it took is measured by the container's clock, which may be hours
   * off ours. If a mark has no time (the script unset EPOCHREALTIME or left its shell), or if the difference
   * cannot be true (somebody set that clock or that variable meanwhile), the marks' arrival counts.
   */
  #span(begun: Mark, ended: Mark): Pick<ScriptStep, 'startedAtMillis' | 'finishedAtMillis'> {
    const earliest = this.#endedAt;
    const start = millisOf(begun.micros);
    const end = millisOf(ended.micros);
    const isTrue = end >= start && end - start <= ended.at - earliest;
    const took = isTrue ? end - start : ended.at - begun.at;
    const isOurs = isTrue && start >= earliest && end <= ended.at;
    const startedAtMillis = isOurs ? start : Math.max(earliest, Math.min(begun.at, ended.at - took));
    this.#endedAt = startedAtMillis + took;
    return { startedAtMillis, finishedAtMillis: this.#endedAt };
  }
}

/** Not a number if the mark has no time. */
function millisOf(micros: string): number {
  return micros === '' ? Number.NaN : Math.floor(Number(micros) / 1000);
}

export interface ScriptRequest {
  /** Bash. Every command, on however many lines, becomes a step; comments and blank lines do not. */
  script: string;
  env?: Readonly<Record<string, string>>;
  cwd?: string;
  user?: string;
  /** Milliseconds for the whole script. */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** As for a single command; see exec-request.ts. */
  mayEndContainer?: boolean;
  /** Bytes of output kept of each step, half from its beginning and half from its end. Default 1 MiB. */
  capBytes?: number;
  /** The clock of the steps' times. Default: that of the engine's client. */
  clock?: Clock | undefined;
  /**
   * Prevents the script's programs from reading or changing the shells that report its steps. See
   * `own-files/shield.c`; not on machines that it is not compiled for.
   */
  shield?: boolean;
}

interface StepFacts {
  /** The step's source text in the script. */
  command: string;
  /** Epoch milliseconds by the request's clock. Their difference is measured in the container. */
  startedAtMillis: number;
  finishedAtMillis: number;
  /** stdout and stderr in the order they were written. A line in it says what was cut. */
  output: string;
  outputTruncated: boolean;
  /** Bytes written, kept or not. */
  outputBytes: number;
}

export type ScriptStep = StepFacts & StepEnd;

/**
 * `finished`: the script ran to its end or left by itself, whatever its exit codes. Otherwise `steps` holds
 * what ran until then, and the last step has the same `ended`.
 */
export type ScriptResult = {
  steps: ScriptStep[];
  oomKilled: boolean;
} & (
  | {
      ended: 'finished';
      /** Whether `/dev/null` and similar files were still devices after the script; false if unknown. */
      devicesIntact: boolean;
      /** Whether the script's programs could not read the shells that report the steps. */
      shielded: boolean;
    }
  | { ended: 'timed-out' | 'canceled' | 'out-of-disk' }
  | { ended: 'not-started'; message: string }
);
