import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeFolder } from '../base/byte-store.ts';
import { messageOf } from '../base/offsite-error.ts';
import { defects } from '../bounds/anyone.ts';
import type { Crashes } from '../ledger/crashes.ts';
import { exitCodes } from './exit-codes.ts';

/** The reason why work was aborted: an unexpected error escaped. */
export class Crashed extends Error {
  override readonly name = 'Crashed';
}

/** Where to note an error that escapes. */
export interface CrashRecord {
  dataFolder: string;
  /** Removes known secrets from what is written. */
  redact(text: string): string;
  /** The ledger's crashes, if the command runs trials. */
  crashes?: Pick<Crashes, 'escaped'> | undefined;
}

export interface LastDefence extends Disposable {
  noteCrashesIn(record: CrashRecord): void;
}

/**
 * Handles an error that escapes from all other code. It notes the error with the affected trials before
 * anything else can fail, calls `stop` so that the command cleans up, and prints one message that says what
 * to report. The command never continues after such an error. Disposing removes the handlers.
 */
export function lastDefence({
  announce,
  stop,
}: {
  announce(message: string): void;
  stop(reason: Crashed): void;
}): LastDefence {
  let record: CrashRecord | undefined;
  let escaped = 0;
  const onError = (error: unknown) => {
    escaped += 1;
    process.exitCode = exitCodes.infrastructure;
    if (escaped > defects.count.escaped) process.exit(exitCodes.infrastructure);
    const file = record && crashFile(record.dataFolder);
    const noted = attempt(() => file !== undefined && record?.crashes?.escaped(file));
    const kept = file !== undefined && attempt(() => writeCrash(file, error, record?.redact));
    if (escaped > 1) return;
    setTimeout(() => process.exit(exitCodes.infrastructure), defects.time.putAway).unref();
    attempt(() => announce(announcement(error, kept ? file : undefined)));
    if (!noted) attempt(() => announce('could not note which trials the error affects'));
    stop(new Crashed(messageOf(error), { cause: error }));
  };
  // The other handlers print such an error and end the process, before the command could clean up.
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', onError);
  return {
    noteCrashesIn(given) {
      record = given;
    },
    [Symbol.dispose]() {
      process.off('uncaughtException', onError);
      for (const other of others) process.on('uncaughtException', other);
    },
  };
}

function announcement(error: unknown, file: string | undefined): string {
  const details = file ?? `this:\n${stackOf(error)}`;
  return (
    `error: unexpected error; this is a defect of Offsite: ${messageOf(error)}\n` +
    `  Running trials are queued again and their sandboxes are removed. Please report ${details}`
  );
}

function crashFile(dataFolder: string): string {
  return join(dataFolder, 'crashes', `${new Date().toISOString().replaceAll(':', '-')}-${process.pid}.txt`);
}

function writeCrash(file: string, error: unknown, redact: ((text: string) => string) | undefined): void {
  makeFolder(dirname(file), 0o700);
  const { version, platform, arch } = process;
  const text = `Node ${version}, ${platform} ${arch}\n${stackOf(error)}\n`;
  writeFileSync(file, redact?.(text) ?? text, { mode: 0o600 });
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { stack = error.message, cause } = error;
  return cause === undefined ? stack : `${stack}\ncaused by ${stackOf(cause)}`;
}

/** Does `work` and returns whether it succeeded. An error here has no further handler. */
function attempt(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
