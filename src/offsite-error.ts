/**
 * Who can fix it. `input`: the caller, in a file, flag or setting (exit 2). `infrastructure`: everything else
 * (exit 3).
 */
export type ErrorKind = 'input' | 'infrastructure';

export interface OffsiteErrorOptions {
  /** Stable and upper-case, for programs and searches: `ENGINE_UNREACHABLE`. */
  code: string;
  kind: ErrorKind;
  /** What the user can do about it, as a full sentence. */
  hint?: string;
  cause?: unknown;
}

/**
 * The base class of every expected error. The message says what happened and what Offsite was doing; `hint`
 * says what to do. Anything else that is thrown is a defect of Offsite and is shown with its stack.
 */
export class OffsiteError extends Error {
  override readonly name: string = 'OffsiteError';
  readonly code: string;
  readonly kind: ErrorKind;
  readonly hint: string | undefined;

  constructor(message: string, { code, kind, hint, cause }: OffsiteErrorOptions) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.kind = kind;
    this.hint = hint;
  }
}

/** The message of anything thrown, without its stack. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
