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

type MoreOfError = Pick<OffsiteErrorOptions, 'hint' | 'cause'>;

/** An error that the caller can fix, in a file, flag or setting. */
export function inputError(code: string, message: string, more: MoreOfError = {}): OffsiteError {
  return new OffsiteError(message, { code, kind: 'input', ...more });
}

/** Any other expected error. */
export function infrastructureError(code: string, message: string, more: MoreOfError = {}): OffsiteError {
  return new OffsiteError(message, { code, kind: 'infrastructure', ...more });
}

/** The message of anything thrown, without its stack. */
export function messageOf(thrown: unknown): string {
  const first = firstThrown(thrown);
  return first instanceof Error ? first.message : String(first);
}

/**
 * The errors that something thrown stands for, oldest first. Usually that is one. If disposing of a resource
 * fails after an error, `using` throws a `SuppressedError` of both.
 */
export function allThrown(thrown: unknown): [unknown, ...unknown[]] {
  if (!(thrown instanceof SuppressedError)) return [thrown];
  const [first, ...later] = allThrown(thrown.suppressed);
  return [first, ...later, ...allThrown(thrown.error)];
}

/**
 * All codes of an error, of its causes, and of its inner errors: IPv4 and IPv6 fail as one AggregateError.
 */
export function codesOf(thrown: unknown): string[] {
  if (!(thrown instanceof Error)) return [];
  const inner = thrown instanceof AggregateError ? thrown.errors : [];
  const own = 'code' in thrown && typeof thrown.code === 'string' ? [thrown.code] : [];
  return [...own, ...[thrown.cause, ...inner].flatMap(codesOf)];
}

/** What an error of a connection says; of one without a message, what its inner errors say, or its code. */
export function failureText(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.message) return thrown.message;
  if (thrown instanceof AggregateError) return thrown.errors.map(failureText).join('; ');
  return codesOf(thrown)[0] ?? thrown.name;
}

/** Why work ended, whatever failed afterwards while its resources were disposed. */
export function firstThrown(thrown: unknown): unknown {
  return allThrown(thrown)[0];
}

/** Whether the work ended with an expected error. Everything else is a defect. */
export function isExpected(thrown: unknown): boolean {
  return firstThrown(thrown) instanceof OffsiteError;
}

/**
 * What to do about an error of the operating system, by its code.
 *
 * @param otherwise what to do about any other error
 */
export function systemHint(thrown: unknown, otherwise: string): string {
  switch ((firstThrown(thrown) as NodeJS.ErrnoException | undefined)?.code) {
    case 'EMFILE':
    case 'ENFILE':
      return 'Too many files are open at the same time. Raise the limit (ulimit -n), or run fewer trials at a time.';
    case 'ENOSPC':
    case 'EDQUOT':
      return 'Free some space.';
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return 'Check its owner and its permissions.';
    default:
      return otherwise;
  }
}

/** A package, or several, that not every installation has, because few people need it and it is large. */
interface OptionalPackage {
  /** A part of the names of its packages, as Node names a missing one. */
  named: string;
  code: string;
  /** What needs it: the whole message. */
  needs: string;
  /** What `npm install` takes. */
  install: string;
}

/** Loads a module that imports an optional package. Throws an `input` error if that is not installed. */
export async function withPackage<Module>(
  { named, code, needs, install }: OptionalPackage,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const { code: reason = '', message = '' } = error as NodeJS.ErrnoException;
    if (!reason.endsWith('MODULE_NOT_FOUND') || !message.includes(named)) throw error;
    const hint = `Install it beside Offsite: npm install ${install}`;
    throw new OffsiteError(needs, { code, kind: 'input', hint, cause: error });
  }
}
