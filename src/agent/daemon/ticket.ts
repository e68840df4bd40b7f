import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, watch } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../../base/byte-store.ts';
import {
  infrastructureError,
  inputError,
  messageOf,
  OffsiteError,
  systemHint,
} from '../../base/offsite-error.ts';
import { parseForeignJson } from '../../base/parse-json.ts';
import { queueTickets } from '../../bounds/suite.ts';
import { openDataFolder } from '../../ledger/data-folder.ts';
import type { SuitePlan } from '../../suite/plan.ts';
import { readText } from '../../suite/yaml-file.ts';
import { plainText } from '../../text/output.ts';
import { readPlan, storedPlan } from '../batch-run.ts';

// A ticket is a batch for the daemon to start: a file in the data folder that holds all of the checked suite.

const ending = '.batch.json';
const partialEnding = '.partial';
const reasonEnding = '.reason.txt';

function queueFolderOf(dataFolder: string): string {
  return join(dataFolder, 'queue');
}

/**
 * Queues a checked suite for the data folder's daemon. The file is complete and synced before it gets its
 * name. Resolves with its path. Throws `QUEUE_NOT_WRITTEN`.
 */
export async function writeTicket(dataFolder: string, plan: SuitePlan): Promise<string> {
  const folder = queueFolderOf(dataFolder);
  const at = new Date().toISOString().replace(/[-:]/g, '').slice(0, 15);
  const suite = plan.suite.id.replace(/[^\w.-]/g, '_').slice(0, 40);
  const file = join(folder, `${at}-${suite}-${randomUUID()}${ending}`);
  const partial = `${file}${partialEnding}`;
  try {
    openDataFolder(dataFolder);
    makeFolder(folder, 0o700);
    await using handle = await open(partial, 'wx', 0o600);
    await handle.writeFile(JSON.stringify(storedPlan(plan)));
    await handle.sync();
    await rename(partial, file);
    await using directory = await open(folder);
    await directory.sync();
    return file;
  } catch (error) {
    if (error instanceof OffsiteError) throw error;
    await rm(partial, { force: true });
    throw infrastructureError(
      'QUEUE_NOT_WRITTEN',
      `cannot queue the suite in ${folder}: ${messageOf(error)}`,
      {
        hint: systemHint(error, 'Check that you own the data folder and that its disk works.'),
        cause: error,
      },
    );
  }
}

/** The files in the queue folder, oldest first. Empty if the folder does not exist yet. */
export function queuedFiles(dataFolder: string): string[] {
  const folder = queueFolderOf(dataFolder);
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory() && !entry.name.endsWith(partialEnding))
    .map(({ name }) => join(folder, name))
    .toSorted();
}

/**
 * Reads what {@link writeTicket} wrote. The plan's `file` is the ticket's path, which identifies the batch in
 * the ledger. Throws `TICKET_BAD`.
 */
export function readTicket(file: string): SuitePlan {
  // `enqueue` writes its files directly into this folder.
  const reach = { within: [dirname(file)], except: [] };
  try {
    const plan = readPlan(
      parseForeignJson(readText(file, { reach, maximumBytes: queueTickets.bytes.ticket })),
    );
    if (plan.cases.length === 0 || plan.variants.length === 0)
      throw new Error('it has no case or no variant');
    return { ...plan, file };
  } catch (error) {
    throw inputError(
      'TICKET_BAD',
      '`offsite daemon enqueue FILE` did not write this file, and only such files start',
      {
        hint: `Name the file of the suite there, and delete this one. What was read: ${messageOf(error)}`,
        cause: error,
      },
    );
  }
}

/** Moves a file that cannot be started to the folder `refused`, with the reason beside it. */
export async function refuseTicket(dataFolder: string, file: string, reason: string): Promise<string> {
  const folder = join(queueFolderOf(dataFolder), 'refused');
  makeFolder(folder, 0o700);
  const target = join(folder, basename(file));
  // We write the reason first, so that no refused file is ever without one.
  const lines = reason.split('\n').map((line) => plainText(line));
  await writeFile(`${target}${reasonEnding}`, `${lines.join('\n')}\n`, { mode: 0o600 });
  await rename(file, target);
  return target;
}

/** A file of the queue that could not be started, and why. */
export interface RefusedTicket {
  file: string;
  reason: string;
}

/** How many refused files are named. */
const mostNamed = 20;

/** The files that were refused and that nobody has removed, the newest ones. */
export function refusedTickets(dataFolder: string): RefusedTicket[] {
  const folder = join(queueFolderOf(dataFolder), 'refused');
  if (!existsSync(folder)) return [];
  // Also files that somebody else put into the queue, whatever their names.
  const files = readdirSync(folder).filter((name) => !name.endsWith(reasonEnding));
  return files
    .toSorted()
    .slice(-mostNamed)
    .map((name) => ({ file: join(folder, name), reason: reasonBeside(join(folder, name)) }));
}

function reasonBeside(file: string): string {
  try {
    const [first = ''] = readText(`${file}${reasonEnding}`).split('\n');
    return first;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Calls `changed` when the queue folder changes, if the system supports that. Without it, the regular rounds
 * find the changes.
 */
export function watchQueue(dataFolder: string, changed: () => void): Disposable {
  const folder = queueFolderOf(dataFolder);
  makeFolder(folder, 0o700);
  try {
    const watcher = watch(folder, changed);
    watcher.on('error', () => watcher.close());
    return { [Symbol.dispose]: () => watcher.close() };
  } catch {
    // The system has no watches left, or cannot watch this folder.
    return { [Symbol.dispose]: () => undefined };
  }
}
