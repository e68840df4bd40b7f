import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defects } from '../bounds/anybody.ts';
import type { Crashes } from '../ledger/crashes.ts';
import { messageOf } from '../offsite-error.ts';
import { exitCodes } from './failure.ts';

/** Why work was given up: an error that nobody expected escaped. */
export class Crashed extends Error {
  override readonly name = 'Crashed';
}

/** Where an error that escapes is noted. */
export interface CrashPlace {
  dataFolder: string;
  /** Takes known secrets out of what is kept. */
  redact(text: string): string;
  /** Of a command that runs trials. */
  crashes?: Pick<Crashes, 'escaped'> | undefined;
}

export interface LastDefence extends Disposable {
  noteCrashesIn(place: CrashPlace): void;
}

/**
 * What is left to do where an error escapes, so that nothing handles it: it is noted with the trials that it
 * is of before anything else can fail, `stop` is told to put away what runs, and one message says what to
 * report. Nothing goes on as if nothing had been. Disposing takes the handlers away.
 */
export function lastDefence({
  announce,
  stop,
}: {
  announce(message: string): void;
  stop(reason: Crashed): void;
}): LastDefence {
  let place: CrashPlace | undefined;
  let escaped = 0;
  const onError = (error: unknown) => {
    escaped += 1;
    process.exitCode = exitCodes.infrastructure;
    if (escaped > defects.count.escaped) process.exit(exitCodes.infrastructure);
    const file = place && crashFile(place.dataFolder);
    const noted = attempt(() => file !== undefined && place?.crashes?.escaped(file));
    const kept = file !== undefined && attempt(() => writeCrash(file, error, place?.redact));
    if (escaped > 1) return;
    setTimeout(() => process.exit(exitCodes.infrastructure), defects.time.putAway).unref();
    attempt(() => announce(announcement(error, kept ? file : undefined)));
    if (!noted) attempt(() => announce('with which trials it happened could not be noted'));
    stop(new Crashed(messageOf(error), { cause: error }));
  };
  // What only prints such an error and ends the process would do so before anything is put away.
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', onError);
  return {
    noteCrashesIn(given) {
      place = given;
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
    `error: Offsite met something it did not expect; this is a defect of Offsite: ${messageOf(error)}\n` +
    `  What runs is put back and its sandboxes are removed. Please report ${details}`
  );
}

function crashFile(dataFolder: string): string {
  return join(dataFolder, 'crashes', `${new Date().toISOString().replaceAll(':', '-')}-${process.pid}.txt`);
}

function writeCrash(file: string, error: unknown, redact: ((text: string) => string) | undefined): void {
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 });
  const { version, platform, arch } = process;
  const text = `Node ${version}, ${platform} ${arch}\n${stackOf(error)}\n`;
  writeFileSync(file, redact?.(text) ?? text, { mode: 0o600 });
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { stack = error.message, cause } = error;
  return cause === undefined ? stack : `${stack}\ncaused by ${stackOf(cause)}`;
}

/** Whether it worked. An error on the last line of defence has nobody left to go to. */
function attempt(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
